"""Fixtures of all tests."""

import gc
import os
import signal

from real_slurm import slurm

__all__ = ["slurm"]

# The numbers that tests expect are those of a CPU. `make test` has set this already.
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
# Python looks for garbage after every 700 new objects, and plans have a million: a tenth of the time of their tests.
gc.set_threshold(50_000, 20, 20)
# Tests send these to what they start, which inherits their being ignored: by `nohup`, or by a shell in its background.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
