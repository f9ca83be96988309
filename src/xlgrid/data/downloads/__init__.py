"""Files from elsewhere than the Hub: `entries` says which a study names, `curl` gets them, `archives` and `bitext` read what came."""

from xlgrid.data.downloads.entries import ARCHIVES, SPLIT_FILES, Download, Found, address, find, regex, winners

__all__ = ["ARCHIVES", "SPLIT_FILES", "Download", "Found", "address", "find", "regex", "winners"]
