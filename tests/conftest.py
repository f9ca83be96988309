"""Fixtures of all tests."""

import signal

from real_slurm import slurm

__all__ = ["slurm"]

# Tests send these to what they start, which inherits their being ignored: by `nohup`, or by a shell in its background.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
