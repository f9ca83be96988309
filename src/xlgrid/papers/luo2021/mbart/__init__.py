"""mBART (Liu et al. 2020), with which Luo et al. 2021 compare VECO: an encoder-decoder that is pre-trained by denoising.

`architecture` has the settings of a study, `denoising` the objective of pre-training, and `models` the fine-tuned models.
"""
