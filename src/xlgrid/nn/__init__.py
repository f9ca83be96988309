"""Modules and functions that methods put into transformers' models."""
