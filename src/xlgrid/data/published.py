"""Where encoders, tokenizers and adapters come from, and the known configurations of some encoders on the Hub."""

from typing import Any, NamedTuple

from pydantic import Field

from xlgrid.base.settings import LocalPath, Strict

_BASE = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072}
_XLMR: dict[str, Any] = _BASE | {
    "model_type": "xlm-roberta",
    "vocab_size": 250002,
    "max_position_embeddings": 514,
    "type_vocab_size": 1,
}
_XLMR_LARGE = _XLMR | {
    "hidden_size": 1024,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "intermediate_size": 4096,
}
_MMBERT: dict[str, Any] = {
    "model_type": "modernbert",
    "vocab_size": 256000,
    "hidden_size": 768,
    "intermediate_size": 1152,
    "num_hidden_layers": 22,
    "pad_token_id": 0,
    "bos_token_id": 2,
    "eos_token_id": 1,
    "cls_token_id": 2,
    "sep_token_id": 1,
}
_DEBERTA: dict[str, Any] = {
    "model_type": "deberta-v2",
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "type_vocab_size": 0,
    "position_biased_input": False,
    "relative_attention": True,
    "position_buckets": 256,
    "norm_rel_ebd": "layer_norm",
    "share_att_key": True,
    "pos_att_type": ["p2c", "c2p"],
}
# The suffixes of the names of the published X-MODs (`facebook/xmod-base`, ...) -> their numbers of languages.
_XMOD = {"base": 81, "base-13-125k": 13, "base-30-125k": 30, "base-30-195k": 30, "base-60-125k": 60}
_XMOD |= {"base-60-265k": 60, "base-75-125k": 75, "base-75-269k": 75}
# The known entries of config.json of encoders on the Hub, for checks before they are fetched: the entries that differ
# from the defaults of transformers for the model type. Encoders with which an encoder from scratch can begin have their
# sizes, too, because these are compared without transformers.
HUB: dict[str, dict[str, Any]] = {
    "google-bert/bert-base-multilingual-cased": _BASE | {"model_type": "bert", "vocab_size": 119547},
    "distilbert/distilbert-base-multilingual-cased": {"model_type": "distilbert", "vocab_size": 119547},
    "intfloat/multilingual-e5-small": _BASE
    | {
        "model_type": "bert",
        "vocab_size": 250037,
        "hidden_size": 384,
        "intermediate_size": 1536,
    },
    "sentence-transformers/LaBSE": _BASE | {"model_type": "bert", "vocab_size": 501153},
    "FacebookAI/xlm-roberta-base": _XLMR,
    "FacebookAI/xlm-roberta-large": _XLMR_LARGE,
    # Alabi et al. 2022 trained XLM-R further, with its tokenizer.
    "Davlan/afro-xlmr-base": _XLMR,
    "Davlan/afro-xlmr-large": _XLMR_LARGE,
    "cis-lmu/glot500-base": _XLMR | {"vocab_size": 401145},
    "jhu-clsp/mmBERT-base": _MMBERT,
    "jhu-clsp/mmBERT-small": _MMBERT | {"hidden_size": 384, "num_attention_heads": 6},
    "EuroBERT/EuroBERT-210m": {"model_type": "eurobert"},
    "microsoft/mdeberta-v3-base": _DEBERTA | {"vocab_size": 251000},
    "microsoft/deberta-v3-base": _DEBERTA,
    # The sizes depend on the number of the languages, and not on their codes.
    **{
        f"facebook/xmod-{name}": _XLMR
        | {"model_type": "xmod", "languages": [f"language {number}" for number in range(languages)]}
        for name, languages in _XMOD.items()
    },
}


class Repository(NamedTuple):
    """A repository on the Hub.

    Attributes:
        kind: "model" or "dataset".
    """

    kind: Any
    name: str
    revision: str

    @property
    def key(self) -> str:
        """The key of the repository in the lock file."""
        return f"{self.kind}/{self.name}@{self.revision}"


class Obtained(Strict):
    """A part of a study with files that come from the Hub, from a folder, or from a training here."""

    @property
    def repository(self) -> Repository | None:
        """The repository from which the files are fetched; None if they come from elsewhere."""
        return None

    @property
    def folder(self) -> str | None:
        """The folder from which the files are copied; None if they come from elsewhere."""
        return None

    @property
    def origin(self) -> dict[str, Any]:
        """The settings of the command that fetches or copies the files."""
        return {}


class OnHub(Obtained):
    """A part of a study that is fetched from the Hugging Face Hub."""

    hub: str = Field(description="owner/name on the Hub")
    revision: str = Field(
        "main", description="branch, tag or commit of `hub`; the first fetch writes the commit into the lock file"
    )

    @property
    def repository(self) -> Repository | None:
        return Repository("model", self.hub, self.revision)

    @property
    def origin(self) -> dict[str, Any]:
        return {"place": self.hub, "revision": [f"--revision={self.revision}"]}


class InFolder(Obtained):
    """A part of a study that is copied from a folder."""

    path: LocalPath = Field(description="a folder in the layout of the Hub")

    @property
    def folder(self) -> str | None:
        return self.path

    @property
    def origin(self) -> dict[str, Any]:
        return {"place": self.path, "revision": []}
