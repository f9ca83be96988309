"""VECO: cross-attention that can be plugged in and out (Luo et al. 2021), the mBART that it is compared with, and the exhibit
of attention between the texts of a pair."""
