"""The recipe of a run, and the training loop."""
