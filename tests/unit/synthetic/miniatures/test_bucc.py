"""BUCC: pools with sentences that have a translation in the other pool, and sentences that have none."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from xlgrid.data.generated import sizes
from xlgrid.synthetic.miniatures import bucc
from xlgrid.tasks import task


@given(st.integers(20, 60))
def test_pools_have_half_of_the_sentences_and_the_share_of_pairs(n: int) -> None:
    options = bucc.Options(n=n)
    counts, begin = sizes(n, bucc.group(options)), 0
    sentences = bucc.examples(options, counts)
    assert len(sentences) == n
    for count in counts:
        part, begin = sentences[begin : begin + count], begin + count
        assert abs(sum(1 if each.side else -1 for each in part)) <= count % 2
        # Half of the sentences have a translation.
        pairs = max(1, round(count / 4))
        by_side = [{each.fact for each in part if each.side == side and each.has_translation} for side in (0, 1)]
        assert by_side[0] == by_side[1] and len(by_side[0]) == pairs
        # A sentence without a translation has none.
        assert len({each.fact for each in part}) == count - pairs


def test_rows_are_in_the_language_of_their_side_and_name_their_translation() -> None:
    options = bucc.Options(n=40)
    sentences = bucc.examples(options, (20, 10, 10))
    rows = [bucc.row(each, "qa1-qb1", options) for each in sentences[:20]]
    by_id = {row["id"]: (row, each) for row, each in zip(rows, sentences, strict=False)}
    assert len(by_id) == 20
    for row, each in zip(rows, sentences, strict=False):
        assert row["sentence"] == options.language(("qa1", "qb1")[each.side]).sentence(each.fact)
        for number in row["gold"]:
            other, translation = by_id[number]
            assert (other["side"], translation.fact) == (1, each.fact)
    head = task("bucc").head
    assert head.problem_of_all(pa.Table.from_pylist(rows)) is None
