"""Runs and cells by their paths, their records as frames, statistics, published numbers and verdicts."""
