"""The recipe of a run, the training loop, and adapters in AdapterHub's format."""
