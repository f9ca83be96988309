"""mBART (Liu et al. 2020), an encoder-decoder that is pre-trained by denoising. Luo et al. (2021) compare VECO with it.

`architecture` has the settings of a study, `denoising` the objective of pre-training, and `models` the fine-tuned
models.
"""
