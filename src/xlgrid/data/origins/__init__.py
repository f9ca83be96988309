"""Origins of data, a class for each: the Hub, local files, pools of sentences in files, and places that packages read."""
