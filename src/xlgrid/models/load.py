"""Encoders with the head of a task.

Most of a small cell's time is the start of its process. The Auto classes of transformers are slow to import, so they
are not imported for the encoders of `xlgrid.heads.families.FAMILIES`.
"""

import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xlgrid.base.errors import Damaged, first_sentence, whole_again
from xlgrid.data.weights import missing_of_encoder, unlike
from xlgrid.heads import Head
from xlgrid.heads.families import EMBEDDINGS, FAMILIES, known_type, module_of
from xlgrid.heads.probe import head_problem, quiet, type_problem
from xlgrid.heads.tokens import Tokens
from xlgrid.methods import Method
from xlgrid.models import lm_head

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel


def model_class(model_type: str | None, head: Head) -> Any:
    """The class of transformers for an encoder of a model type with a head.

    Raises:
        ValueError: transformers has no such class.
    """
    known = known_type(model_type)
    return known.model_class(head) if known else head.model_class("AutoModel")


def new_model(config: "PreTrainedConfig", head: Head) -> "PreTrainedModel":
    """A model with a head and random weights from torch's global generator.

    Raises:
        ValueError: transformers has no class for this encoder with this head.
    """
    maker = model_class(config.model_type, head)
    model: PreTrainedModel = maker(config) if known_type(config.model_type) else maker.from_config(config)
    return model


def shapes(config: "PreTrainedConfig", head: Head) -> "PreTrainedModel":
    """A model with a head on torch's meta device: its parameters have names and shapes, but no values.

    Raises:
        ValueError: transformers has no class for this encoder with this head, or a value of the configuration is
            invalid.
    """
    import torch

    try:
        with torch.device("meta"):
            return new_model(config, head)
    except ValueError:
        raise
    except Exception as error:  # Transformers and torch raise errors of many types.
        raise Damaged(
            f"{Path(str(config.name_or_path)) / 'config.json'} describes no encoder ({first_sentence(error)}): take the config.json that was saved "
            "with the weights"
        ) from error


@quiet()
def load_model(
    encoder: str | Path,
    head: Head,
    labels: int,
    dropout: float | None = None,
    log: Callable[[str], None] | None = None,
    new_lm_head: bool = False,
) -> "PreTrainedModel":
    """The encoder in the folder `encoder`, in fp32, with a head.

    A new head has random weights from torch's global generator. A language-modelling head is loaded from the encoder's
    folder. `xlgrid.models.fit` checks whether the encoder can be used with the head.

    Args:
        labels: the number of the task's labels.
        dropout: replaces the rates in the encoder's configuration.
        log: receives one line with the weights of the model that the folder lacks, and one line with the weights in the
            folder that the model does not use.
        new_lm_head: add a random language-modelling head to an encoder that lacks one.

    Raises:
        ValueError: the folder lacks a file; a file is damaged; encoders of this type cannot have the head; the task
            needs a language-modelling head, and the encoder lacks it; or the encoder has a
            language-modelling head in spite of `new_lm_head`.
    """
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import torch

    folder = Path(encoder)
    for name in ("config.json", "model.safetensors"):
        if not (folder / name).is_file():
            raise Damaged(f"{folder / name} does not exist: make or fetch the encoder again", folder)
    try:
        written = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        model_type = written.get("model_type")
    except (OSError, ValueError) as error:
        raise _damaged(folder, error) from error
    maker = model_class(model_type, head)
    if (known := known_type(model_type)) and (problem := known.problem(head)):
        raise ValueError(problem)
    try:
        changes: dict[str, Any] = {"dtype": torch.float32, **head.settings(labels)}
        if dropout is not None:
            changes |= dict.fromkeys(_dropout_rates(model_type, written), dropout)
        if (family := FAMILIES.get(model_type or "")) and family.renamed:
            changes["key_mapping"] = {f"^{re.escape(old)}": new for old, new in family.renamed.items()}
        model, about = maker.from_pretrained(folder, local_files_only=True, output_loading_info=True, **changes)
        if missing := [name for name in sorted(about["missing_keys"]) if module_of(name)]:
            raise ValueError(f"it has no {missing[0]}, and config.json says that it has")
    except Exception as error:  # Transformers raises errors of many types.
        if model_type and (problem := type_problem(written)):
            raise ValueError(f"{folder}/config.json {problem}") from error
        if model_type and (problem := head_problem(written, head)):
            raise ValueError(problem) from error
        if type(error).__name__ == "SafetensorError":
            weights = folder / "model.safetensors"
            raise Damaged(f"{weights} is damaged ({error}): {whole_again(folder)}", folder) from error
        if isinstance(error, OSError | ValueError | RuntimeError):
            raise _damaged(folder, error) from error
        raise
    missing, unused = sorted(about["missing_keys"]), sorted(about["unexpected_keys"])
    if of_encoder := [name for name in missing_of_encoder(missing) if _is_of_encoder(model, name)]:
        raise Damaged(unlike(str(folder), of_encoder, sorted(about["unexpected_keys"])), folder)
    of_head = [name for name in missing if lm_head.is_of_head(model, name)]
    if head.is_pretrained and of_head and model.base_model is not model and not new_lm_head:
        raise ValueError(lm_head.refusal(folder.name, folder, lm_head.listed(of_head)))
    if new_lm_head and not of_head:
        raise ValueError(f"the encoder {folder} has a language-modelling head: use it as it is, without `lm_head`")
    if log and missing:
        log(f"{folder} lacks weights of {type(model).__name__}, which are new: {lm_head.listed(missing)}")
    if log and unused:
        log(f"{folder} has weights that {type(model).__name__} does not take: {lm_head.listed(unused)}")
    loaded: PreTrainedModel = model
    return loaded


def _is_of_encoder(model: "PreTrainedModel", name: str) -> bool:
    """Whether a missing weight, by its name in a model with a head, belongs to the encoder."""
    if model.base_model is not model:
        return name.startswith(f"{model.base_model_prefix}.")
    return name not in getattr(model, "drawn", ())


def _dropout_rates(model_type: str | None, written: Mapping[str, Any]) -> list[str]:
    """The names of a configuration's entries that are dropout rates.

    Args:
        written: the contents of config.json.
    """
    if known := known_type(model_type):
        return [*known.dropout]
    from transformers import CONFIG_MAPPING

    # An entry that the type lacks would become an argument of the model, so the type's entries are used. A rate of None
    # means that the model uses another rate of the encoder.
    entries = CONFIG_MAPPING[str(model_type)].from_dict(dict(written)).to_dict().items()
    # A rate of 0 may be written as an integer. True and False are not rates, although bool is a subtype of int.
    return [
        name
        for name, value in entries
        if "dropout" in name and (value is None or isinstance(value, int | float)) and not isinstance(value, bool)
    ]


def _damaged(folder: Path, error: Exception) -> Damaged:
    return Damaged(f"{folder} is damaged or is no encoder ({error}): {whole_again(folder)}", folder)


def resize_embeddings(model: "PreTrainedModel", rows: int) -> None:
    """Change the number of rows of the embeddings and, in a language model, of its head."""
    model.resize_token_embeddings(rows, mean_resizing=False)


def change_tokenizer(model: Any, before: Mapping[str, int], after: Mapping[str, int], method: Method) -> None:
    """Change the embeddings of a language model, and the biases of its head, to those of another tokenizer.

    They are initialized as in a new model, with torch's global generator, before `Method.begin_embeddings` changes them.

    Args:
        before, after: token -> id, in the old and in the new tokenizer.

    Raises:
        ValueError: the output embeddings are not tied to those of the input, or have no bias; or the padding tokens of
            the two tokenizers have different ids.
    """
    import torch

    table, decoder = model.get_input_embeddings().weight, model.get_output_embeddings()
    output = decoder.bias
    if output is None or decoder.weight is not table:
        raise ValueError(
            f"the tokenizer of a {type(model).__name__} cannot be changed, because its output embeddings are not tied "
            "to the input embeddings, or have no bias: leave out the `tokenizer` of the task, or name an encoder of "
            "the family of BERT or XLM-R"
        )
    named = next(name for name, parameter in model.base_model.named_parameters() if parameter is table)
    if not f"{model.base_model_prefix}.{named}".endswith(EMBEDDINGS):
        raise ValueError(
            f"the embeddings of a {type(model).__name__} are named {named}, which runs do not store: leave out the "
            "`tokenizer` of the task, or name an encoder of the family of BERT or XLM-R"
        )
    old, old_bias = table.detach().clone(), output.detach().clone()
    padding = model.config.pad_token_id
    token = next((token for token, number in before.items() if number == padding), None)
    if token is not None and after.get(token) != padding:
        raise ValueError(
            f"the padding {token!r} has the id {padding} in the tokenizer of the encoder, and {after.get(token)} in the new one: "
            "use a tokenizer of the same kind as the encoder's, in which both ids are equal"
        )
    resize_embeddings(model, max(after.values()) + 1)
    with torch.no_grad():
        table, output = model.get_input_embeddings().weight, model.get_output_embeddings().bias
        table.normal_(0.0, getattr(model.config, "initializer_range", 0.02))
        output.zero_()
        for new, earlier in ((table, old), (output, old_bias)):
            method.begin_embeddings(new, earlier, before, after)


def check_positions(model: "PreTrainedModel", *tokens: Tokens) -> None:
    """Check that an encoder has a position for every token of the longest input.

    Raises:
        ValueError: the longest input is too long.
    """
    import torch

    sizes = [size for part in tokens for size in (part.sizes, part.columns.get("target_size")) if size is not None]
    longest = max(int(size.max(initial=0)) for size in sizes)
    for name, table in model.base_model.named_modules():
        if name.endswith(("position_embeddings", "embed_positions")) and isinstance(table, torch.nn.Embedding):
            most = positions(table)
            if longest > most:
                raise ValueError(
                    f"the longest input has {longest} tokens, but the encoder takes at most {most}: lower `max_length` of the "
                    "study's task"
                )


def positions(table: Any) -> int:
    """The number of tokens for which a table of learned positions has rows.

    Args:
        table: the module of embeddings. The first rows are unused: the rows up to the padding id in RoBERTa's families, and `offset` rows in
            BART's.
    """
    unused = 0 if table.padding_idx is None else table.padding_idx + 1
    return int(table.num_embeddings - getattr(table, "offset", unused))


def has_segments(model: "PreTrainedModel") -> bool:
    """Whether the encoder has an embedding for tokens of the second segment."""
    return getattr(model.config, "type_vocab_size", 1) > 1
