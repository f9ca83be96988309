"""Runs array tasks on Slurm or on this machine, in both cases through submitit."""
