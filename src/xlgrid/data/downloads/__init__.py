"""Download files that are not on the Hub.

`entries` defines the `downloads` of a study, `rules` finds the rule that makes a file, `curl` downloads it, and
`archives` and `bitext` read archives.
"""

from xlgrid.data.downloads.entries import Download, MatchedEntry, find
from xlgrid.data.downloads.rules import Downloads

__all__ = ["Download", "Downloads", "MatchedEntry", "find"]
