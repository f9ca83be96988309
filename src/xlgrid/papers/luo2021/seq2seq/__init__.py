"""Texts that are generated from texts, such as translations: the head, its encoder-decoder, and its metric."""

from xlgrid.papers.luo2021.seq2seq.head import Seq2SeqHead

HEAD = Seq2SeqHead()
