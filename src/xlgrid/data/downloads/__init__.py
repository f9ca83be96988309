"""Download files that are not on the Hub.

`entries` defines the `downloads` of a study, `rules` finds the rule that makes a file, `curl` downloads it, and `archives` reads archives.
"""

from xlgrid.data.downloads.entries import ALL_DOWNLOADS, AnyDownload, Download, MatchedEntry, find
from xlgrid.data.downloads.rules import Downloads

__all__ = ["ALL_DOWNLOADS", "AnyDownload", "Download", "Downloads", "MatchedEntry", "find"]
