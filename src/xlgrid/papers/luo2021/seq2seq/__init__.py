"""Generation of texts from texts, such as translation: the head, its encoder-decoder, and its metric."""

from xlgrid.papers.luo2021.seq2seq.head import Seq2SeqHead

HEAD = Seq2SeqHead()
