"""Texts that are generated from texts, such as translations: the head, its encoder-decoder, and its metric."""

from xlgrid.heads.seq2seq.head import Seq2SeqHead

__all__ = ["Seq2SeqHead"]
