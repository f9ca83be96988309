"""Origins of data: the Hub, local files, and pools of sentences in files. Each origin is a class."""
