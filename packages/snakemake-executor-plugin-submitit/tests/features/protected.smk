# An output of old that is write-protected, and older than its input.
import os

# Root may write anything; let this process see what anybody else sees.
access = os.access
os.access = lambda path, mode: access(path, mode) and (mode != os.W_OK or bool(os.stat(path).st_mode & 0o200))


rule protected:
    input:
        "in/text.txt",
    output:
        protected("out/text.txt"),
    shell:
        "echo new > {output}"
