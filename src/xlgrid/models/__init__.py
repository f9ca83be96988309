"""Encoders with a head: how they are loaded, what a run stores of them, and how it predicts."""
