"""Tiny encoders: BERT's or XLM-R's architecture, pre-trained from scratch in minutes by MLM, TLM on bitext, and NSP."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field, PositiveFloat, PositiveInt

from xlgrid.base.settings import Seed, Strict
from xlgrid.data.encoders import copy_tokenizer, token_ids, whole_folder, write_json
from xlgrid.data.formats import read_text
from xlgrid.data.vocabulary import Kind, specials
from xlgrid.heads.mlm import MASKED, language_head
from xlgrid.training.schedule import POOL
from xlgrid.training.state import say

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from tokenizers import Tokenizer
    from transformers import PreTrainedConfig, PreTrainedModel


class MiniEncoder(Strict):
    """A miniature multilingual encoder: BERT's or XLM-R's architecture, from scratch."""

    kind: Kind = "bert"
    languages: tuple[str, ...] = Field(min_length=1, description="languages of the text")
    bitext: tuple[tuple[str, str], ...] = Field((), description="pairs of languages to align by TLM")
    vocab: PositiveInt = Field(2000, description="most entries of a vocabulary of its own")
    hidden: PositiveInt = 128
    layers: PositiveInt = 4
    heads: PositiveInt = 4
    intermediate: PositiveInt = 256
    steps: PositiveInt = 1500
    lr: PositiveFloat = 1e-3
    batch: PositiveInt = Field(32, description="texts per step")
    seed: Seed = 0
    max_length: PositiveInt = Field(512, description="tokens; longer texts are cut")
    tlm: float = Field(0.5, ge=0, le=1, description="share of steps on pairs (Conneau and Lample 2019), if any")
    nsp: bool = Field(
        False,
        description="also tell, from the first token, whether a text's second line is its own or that of another text of the "
        "language (next sentence prediction, Devlin et al. 2019); a bert keeps the pooler",
    )


def make_mini(
    spec: MiniEncoder,
    texts: Mapping[str, str | Path],
    vocabulary: str | Path,
    folder: str | Path,
) -> None:
    """Train an encoder on texts, as `xlgrid.data.text` writes them; write it, with its vocabulary, to `folder`.

    Lines about the training go to stderr. The same specification, texts and number of threads give the same encoder.

    Args:
        spec: sizes and training.
        texts: a parquet file with the columns `id` and `text` for each of the languages.
        vocabulary: the folder of the encoder's vocabulary, of the same kind.
        folder: appears when everything is done.

    Raises:
        FileNotFoundError: a text does not exist.
        ValueError: a language has no text, the sizes do not go together, or the vocabulary is damaged or of another kind.
    """
    import torch
    from tokenizers import Tokenizer

    known = {language for pair in spec.bitext for language in pair} | set(spec.languages)
    missing = [language for language in sorted(known) if language not in texts]
    if missing:
        raise ValueError(f"no text in {', '.join(missing)} (there are: {', '.join(texts) or 'none'}): make it first")
    if spec.hidden % spec.heads:
        raise ValueError(f"hidden ({spec.hidden}) must be a multiple of heads ({spec.heads})")
    corpus = {language: read_text(texts[language]) for language in sorted(known)}
    entries = token_ids(vocabulary)
    if missing := [token for token in specials(spec.kind).values() if token not in entries]:
        raise ValueError(
            f"the vocabulary {vocabulary} has no {missing[0]}: an encoder of kind {spec.kind} takes its own kind"
        )
    tokenizer = Tokenizer.from_file(str(Path(vocabulary) / "tokenizer.json"))
    with torch.random.fork_rng():
        torch.manual_seed(spec.seed)
        model = _new_model(spec, tokenizer.get_vocab_size())
    _pretrain(model, tokenizer, spec, corpus)
    with whole_folder(folder) as aside:
        model.save_pretrained(aside)
        copy_tokenizer(vocabulary, aside)
        # The vocabulary may be for longer inputs.
        config = json.loads((aside / "tokenizer_config.json").read_text(encoding="utf-8"))
        write_json(aside / "tokenizer_config.json", config | {"model_max_length": spec.max_length})
        write_json(aside / "encoder.json", {"source": "mini", "spec": spec.model_dump(mode="json")})


def mini_configuration(spec: MiniEncoder, vocab: int) -> "PreTrainedConfig":
    """The configuration of an encoder with a vocabulary of `vocab` entries."""
    from transformers import BertConfig, XLMRobertaConfig

    sizes: dict[str, Any] = {
        "vocab_size": vocab,
        "hidden_size": spec.hidden,
        "num_hidden_layers": spec.layers,
        "num_attention_heads": spec.heads,
        "intermediate_size": spec.intermediate,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
    }
    if spec.kind == "bert":
        return BertConfig(**sizes, max_position_embeddings=spec.max_length, pad_token_id=0)
    # XLM-R counts positions from the padding id + 1.
    ids: dict[str, Any] = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2}
    length = spec.max_length + 2
    return XLMRobertaConfig(**sizes, max_position_embeddings=length, type_vocab_size=1, layer_norm_eps=1e-5, **ids)


def _new_model(spec: MiniEncoder, vocab: int) -> "PreTrainedModel":
    from transformers import BertForMaskedLM, XLMRobertaForMaskedLM

    model_type: Any = BertForMaskedLM if spec.kind == "bert" else XLMRobertaForMaskedLM
    return model_type(mini_configuration(spec, vocab))


def _pretrain(
    model: "PreTrainedModel",
    tokenizer: "Tokenizer",
    spec: MiniEncoder,
    corpus: dict[str, dict[int, str]],
) -> None:
    """MLM, and NSP if asked for, on single texts, TLM on pairs of them with the same id."""
    import numpy as np
    import torch
    from torch.nn.functional import cross_entropy
    from transformers.models.bert.modeling_bert import BertPooler

    rng = np.random.default_rng([spec.seed, 1])
    tokenizer.enable_truncation(spec.max_length)
    # What follows a line break is the second segment, as a question is after its context.
    singles: list[Any] = [
        tuple(text.split("\n", 1)) if "\n" in text else text
        for language in spec.languages
        for text in corpus[language].values()
    ]
    aligned = [
        tuple(corpus[code][i].replace("\n", " ") for code in (a, b))
        for a, b in spec.bitext
        for i in sorted(corpus[a].keys() & corpus[b].keys())
    ]
    if spec.bitext and not aligned:
        raise ValueError(f"the texts of {spec.bitext} share no id: make them with one seed")
    trained = [*model.parameters()]
    if spec.nsp:
        if not all(isinstance(text, tuple) for text in singles):
            raise ValueError(
                "nsp takes texts of two lines, which are those of natural languages with `statements`: set it to false"
            )
        sizes = [len(corpus[language]) for language in spec.languages]
        # For each single text, where those of its language begin, and how many these are.
        begins, numbers = (np.repeat(each, sizes) for each in (np.cumsum(sizes) - sizes, sizes))
        with torch.random.fork_rng():
            torch.manual_seed(spec.seed)
            pooler, follows = BertPooler(model.config), torch.nn.Linear(spec.hidden, 2)
        trained += [*pooler.parameters(), *follows.parameters()]
        if spec.kind == "bert":
            model.base_model.pooler = pooler
    optimizer = torch.optim.AdamW(trained, lr=spec.lr, weight_decay=0.01, fused=True)
    warmup = max(1, spec.steps // 10)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / warmup, max(0.0, (spec.steps - step) / (spec.steps - warmup + 1)))
    )
    head: Any = language_head(model)
    of_singles, of_aligned = (_near_in_length(source, spec.batch, rng) for source in (singles, aligned))
    model.train()
    start, losses, guesses = time.monotonic(), [], []
    for step in range(spec.steps):
        paired = bool(aligned) and rng.random() < spec.tlm
        picked = next(of_aligned if paired else of_singles)
        drawn = [(aligned if paired else singles)[i] for i in picked]
        has_labels = spec.nsp and not paired
        if has_labels:
            others = begins[picked] + rng.integers(numbers[picked])
            drawn, kept = _some_exchanged(drawn, [singles[i] for i in others], rng)
        inputs, labels = _masked(tokenizer, drawn, rng, spec)
        states = model.base_model(**inputs).last_hidden_state
        due = labels != -100
        loss = cross_entropy(head(states[due]), labels[due])
        losses.append(float(loss.detach()))
        if has_labels:
            following = cross_entropy(follows(pooler(states)), torch.from_numpy(kept).long())
            guesses.append(float(following.detach()))
            loss = loss + following
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        schedule.step()
        if (step + 1) % max(1, spec.steps // 10) == 0:
            told_of = {"MLM": losses, "NSP": guesses}
            means = [f"{name} loss {sum(each) / len(each):.3f}" for name, each in told_of.items() if each]
            say(f"step {step + 1}/{spec.steps}: {', '.join(means)}, {time.monotonic() - start:.0f} s")
            losses.clear()
            guesses.clear()
    model.eval()
    tokenizer.no_truncation()


def _near_in_length(source: Sequence[Any], batch: int, rng: "np.random.Generator") -> "Iterator[NDArray[np.int64]]":
    """Batches of random texts or pairs without end, as `schedule.epoch` cuts them: much of each would else be padding."""
    import numpy as np

    lengths = np.array([len(one) if isinstance(one, str) else sum(map(len, one)) for one in source])
    while True:
        pool = rng.integers(len(source), size=POOL * batch)
        pool = pool[np.argsort(lengths[pool], kind="stable")].reshape(POOL, batch)
        yield from rng.permutation(pool)


def _some_exchanged(
    drawn: list[Any], others: list[Any], rng: "np.random.Generator"
) -> tuple[list[Any], "NDArray[np.bool_]"]:
    """Half of the texts with the second line of the others, and which texts kept their own."""
    kept = rng.random(len(drawn)) < 0.5
    return [one if own else (one[0], other[1]) for one, other, own in zip(drawn, others, kept, strict=True)], kept


def _masked(tokenizer: "Tokenizer", drawn: list[Any], rng: "np.random.Generator", spec: MiniEncoder) -> tuple[Any, Any]:
    """A padded batch of the model's inputs, and its labels, -100 where nothing is to be predicted."""
    import numpy as np
    import torch

    encoded = tokenizer.encode_batch(drawn)
    shape = len(encoded), max(len(one.ids) for one in encoded)
    ids = np.full(shape, tokenizer.token_to_id(specials(spec.kind)["pad"]), dtype=np.int64)
    kinds, mask, free = (np.zeros(shape, dtype=np.int64) for _ in range(3))
    for i, one in enumerate(encoded):
        length = len(one.ids)
        ids[i, :length], kinds[i, :length], mask[i, :length] = one.ids, one.type_ids, 1
        free[i, :length] = 1 - np.array(one.special_tokens_mask)
    chosen = (rng.random(shape) < MASKED) & (free == 1)
    chosen[0, 1] |= not chosen.any()  # a loss over nothing is not a number
    labels = np.where(chosen, ids, -100)
    dice = rng.random(shape)
    mask_id: Any = tokenizer.token_to_id(specials(spec.kind)["mask"])
    random_ids = rng.integers(tokenizer.get_vocab_size(), size=shape)
    ids = np.where(chosen & (dice < 0.8), mask_id, ids)
    ids = np.where(chosen & (dice >= 0.9), random_ids, ids)
    inputs = {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(mask)}
    if spec.kind == "bert":
        inputs["token_type_ids"] = torch.from_numpy(kinds)
    return inputs, torch.from_numpy(labels)
