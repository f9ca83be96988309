"""Training of several runs at once: the layers of one encoder compute the tokens of all runs in one forward pass."""
