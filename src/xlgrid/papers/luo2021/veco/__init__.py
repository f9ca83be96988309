"""VECO: XLM-R with cross-attention that can be plugged in and out (Luo et al. 2021).

`names` has the names of the parameters, `modules` the two streams of the encoder, `objective` its pre-training, and
`method` the method of a study that plugs in the cross-attention.
"""

from xlgrid.papers.luo2021.veco.method import PlugIn

__all__ = ["PlugIn"]
