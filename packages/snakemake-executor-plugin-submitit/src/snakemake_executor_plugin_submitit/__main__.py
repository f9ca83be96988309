"""What other programs call: `run BUNDLE` runs the jobs of a bundle in a task; `about CLUSTER` prints what a cluster says about itself."""

import sys
from pathlib import Path


def main(verb: str, subject: str) -> str | None:
    """Carry out a command; an error message is returned."""
    if verb == "run":
        from snakemake_executor_plugin_submitit.worker import Runner

        Runner(Path(subject).absolute()).run()
        return None
    from snakemake_executor_plugin_submitit.clusters import CLUSTERS

    try:
        print(CLUSTERS[subject]().about())
    except KeyError:
        return f"no cluster has the name {subject!r}: the installed ones are {', '.join(CLUSTERS)}"
    except (OSError, RuntimeError) as error:
        return str(error)
    return None


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
