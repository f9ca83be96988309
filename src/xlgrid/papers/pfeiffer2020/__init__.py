"""MAD-X: language, invertible and task adapters (Pfeiffer et al. 2020), and the exhibits that only this paper has."""
