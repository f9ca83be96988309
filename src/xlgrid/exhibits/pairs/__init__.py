"""Kinds of exhibits over pairs of a source and a target: scores against distances, rankings of sources and methods."""
