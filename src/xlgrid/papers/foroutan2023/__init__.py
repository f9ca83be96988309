"""Structured self-attention with cross-lingual queries (Foroutan et al. 2023): attention dropout between two languages,
a second query between them, and the comparison of a run's attention on two targets."""
