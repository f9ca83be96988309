"""A tiny encoder for tests, pre-trained for three steps."""

from xlgrid.data.text import TextSettings, make_text
from xlgrid.data.vocabulary import make_vocabulary
from xlgrid.training.encoders import EncoderEntry
from xlgrid.training.mini import MiniEncoder, make_mini

TINY = {"vocab": 300, "hidden": 16, "layers": 1, "heads": 2, "intermediate": 16, "steps": 3, "batch": 4}


def pretrain(spec, texts, out):
    """An encoder and, beside it, its own vocabulary."""
    vocabulary = out.with_name(f"{out.name}-vocabulary")
    make_vocabulary(EncoderEntry(mini=spec).own_vocabulary, [*texts.values()], vocabulary)
    make_mini(spec, texts, vocabulary, out)


def mini(folder, kind, **more):
    texts = {language: folder / f"{language}.parquet" for language in ("en", "fr")}
    folder.mkdir(exist_ok=True)
    for language, path in texts.items():
        make_text(language, path, TextSettings(sentences=60))
    out = folder / kind
    spec = MiniEncoder(kind=kind, languages=("en", "fr"), bitext=(("en", "fr"),), **(TINY | more))
    pretrain(spec, texts, out)
    return out
