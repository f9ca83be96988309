"""Named entities of artificial languages."""

from xlgrid.synthetic.artificial import NER
from xlgrid.synthetic.miniatures.wikiann import Options, examples, row
from xlgrid.synthetic.world import mentions


def test_spans_agree_with_tags():
    options = Options(n=50)
    for record in (row(fact, "qa1", options) for fact in examples(options, (50, 0, 0))):
        starts = sum(NER[tag].startswith("B-") for tag in record["ner_tags"])
        assert starts == len(record["spans"]) > 0
        words = " ".join(word for word, tag in zip(record["tokens"], record["ner_tags"], strict=True) if tag)
        assert words == " ".join(span.split(": ", 1)[1] for span in record["spans"])


def test_held_out_entities_are_not_in_training():
    facts = examples(Options(n=100, held_out_entities=True), (70, 10, 20))
    train, rest = ({name for fact in part for name in mentions(fact)} for part in (facts[:70], facts[70:]))
    assert len(facts) == 100 and len(set(facts)) == 100
    assert not train & rest
