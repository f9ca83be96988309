"""Named entities of artificial languages."""

from xlgrid.synthetic.artificial import NER
from xlgrid.synthetic.miniatures.wikiann import Options, examples, row


def test_spans_agree_with_tags():
    options = Options(n=50)
    for record in (row(fact, "qa1", options) for fact in examples(options, (50, 0, 0))):
        starts = sum(NER[tag].startswith("B-") for tag in record["ner_tags"])
        assert starts == len(record["spans"]) > 0
        words = " ".join(word for word, tag in zip(record["tokens"], record["ner_tags"], strict=True) if tag)
        assert words == " ".join(span.split(": ", 1)[1] for span in record["spans"])
