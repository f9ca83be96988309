"""Files from elsewhere than the Hub: `entries` says which a study names, `rules` which rule makes each, `curl` gets them, `archives` and
`bitext` read what came."""

from xlgrid.data.downloads.entries import Download, Found, find
from xlgrid.data.downloads.rules import Downloads

__all__ = ["Download", "Downloads", "Found", "find"]
