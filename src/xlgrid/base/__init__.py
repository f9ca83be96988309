"""Strict settings, errors that name the nearest known name, and files that appear whole or not at all."""
