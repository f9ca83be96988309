"""Tasks of retrieval, for encoders that nothing trains: Tatoeba and BUCC, as XTREME has them (Hu et al. 2020)."""
