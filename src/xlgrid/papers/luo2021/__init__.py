"""VECO, whose cross-attention can be plugged in and out (Luo et al. 2021), the mBART with which it is compared, and an
exhibit of attention between the texts of a pair."""
