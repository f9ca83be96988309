"""X-MOD: an encoder with a module for each language (Pfeiffer et al. 2022)."""
