"""Data, text and encoders from the Hub, from files or generated; tokens and batches."""
