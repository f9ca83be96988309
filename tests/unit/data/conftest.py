"""A tiny encoder with small data and texts, which tests of tokens share."""

import pytest
from scratch_fixture import pretrain

from xlgrid.architectures.plain import Plain
from xlgrid.data.generated import make_data, make_meanings
from xlgrid.data.text import TextSettings, make_text

TINY = {"vocab": 400, "hidden": 8, "layers": 1, "heads": 1, "intermediate": 8}


@pytest.fixture(scope="module", params=["bert", "xlmr"])
def world(request, tmp_path_factory):
    """A folder with an encoder and small data of every head."""
    folder = tmp_path_factory.mktemp("tokens")
    texts = {language: folder / f"{language}.parquet" for language in ("en", "qa1")}
    for language, path in texts.items():
        make_text(language, path, TextSettings(sentences=100, seed=0))
    pretrain(Plain(kind=request.param, languages=("en", "qa1"), **TINY), texts, folder / "encoder")
    for kind, language in (("ruletaker", "en"), ("wikiann", "qa1")):
        make_meanings(kind, {"n": 40}, folder / f"{kind}.parquet")
        make_data(kind, {"n": 40}, language, folder / f"{kind}.parquet", folder / kind)
    return folder
