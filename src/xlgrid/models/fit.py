"""Check by its config.json whether an encoder can be combined with a head and a method."""

import json
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from xlgrid.base.errors import first_sentence
from xlgrid.base.family import Family
from xlgrid.heads import Head
from xlgrid.heads.families import known_type
from xlgrid.heads.probe import (
    CONTEXT,
    INSTEAD,
    LENGTH,
    answers,
    depends_on_padding,
    head_problem,
    quiet,
    small_model,
)
from xlgrid.heads.tokens import Tokens, Vocabulary
from xlgrid.methods import ALL_METHODS, Method, is_head
from xlgrid.models import deltas

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def misfit_of_method(config: Mapping[str, Any], method: Method, head: Head) -> str | None:
    """The error message, with advice, for a method that does not fit an encoder; None if it fits.

    The head must fit the encoder. For the types of encoders that xlgrid knows, `Method.misfit` gives the answer. Any
    other type is tried: the method is installed in a small model of the type, and the parameters that it adds and trains
    must change the model's output.
    """
    try:
        problem = method.misfit(head.described(config))
    except Exception as error:  # A method of a package may have a mistake of any type.
        return f"`misfit` of {type(method).__name__} failed ({first_sentence(error)}): correct it"
    if problem:
        return problem
    if not config or known_type(config["model_type"]) or not method.is_trained:
        return None
    return _tried(json.dumps(config, sort_keys=True), method, head)


def mistake_of_package(config: Mapping[str, Any], method: Method, head: Head) -> str | None:
    """The mistake that a package's method shows in a small model of a type that xlgrid knows; None without a mistake.

    The method must fit the encoder (`misfit_of_method`). This is not for the reading of a study, because it imports torch.
    Tests try xlgrid's own methods.
    """
    known = known_type(config.get("model_type", ""))
    # transformers has no small model with language modules like those of xlgrid, and no decoder for every encoder.
    has_small_model = isinstance(known, Family) and not known.modules and head.model_suffix
    if not has_small_model or not method.is_trained or type(method) in ALL_METHODS.own.values():
        return None
    return _tried(json.dumps(config, sort_keys=True), method, head)


def install(model: "PreTrainedModel", head: Head, method: Method) -> None:
    """Install a method in a loaded model with a head, and check that both fit the encoder.

    Raises:
        ValueError: the head or the method cannot be used with the encoder.
    """
    check_head(model, head)
    config = head.described(model.config.to_dict())
    if problem := misfit_of_method(config, method, head) or mistake_of_package(config, method, head):
        raise ValueError(problem)
    method.install(model)


def check_head(model: "PreTrainedModel", head: Head) -> None:
    """Check that the encoder of a loaded model can be used with a head.

    Loading a study checks this, too, but only if the files of the encoder already exist.

    Raises:
        ValueError: the head cannot be used with the encoder.
    """
    if problem := head_problem(head.described(model.config.to_dict()), head):
        raise ValueError(problem)


@cache
@quiet()
def _tried(written: str, method: Method, head: Head) -> str | None:
    """The problem with a method in a small model of an encoder, whose configuration is JSON."""
    import torch

    config = json.loads(written)
    model = small_model(config, head.model_class("AutoModel"))
    kind = config["model_type"]
    base = next((base for base, made in ALL_METHODS.own.items() if made is type(method)), type(method).__name__)
    own = {id(parameter) for parameter in model.parameters()}
    try:
        with torch.random.fork_rng(devices=[]):
            method.install(model)
    except ValueError as error:
        return str(error)
    except Exception as error:  # A method of a package may have a mistake of any type.
        return (
            f"method {base} cannot be installed in an encoder of type {kind} ({first_sentence(error)}): correct its "
            "`install`"
        )
    parameters = deltas.named_parameters(model)
    trained = {name: parameter for name, parameter in parameters.items() if deltas.trains(method, name)}
    if not trained:
        return f"method {base} finds nothing to train in an encoder of type {kind}: {INSTEAD}"
    added = [name for name, parameter in parameters.items() if id(parameter) not in own]
    # The MLM run with which a run begins may have trained what the method adds.
    if added and trained.keys().isdisjoint(added) and all(map(is_head, trained)) and not method.needs_start:
        return f"method {base} adds parameters, such as {added[0]}, and trains only the head: name them in its `trains`"
    ids, ends, contexts = np.zeros(LENGTH, np.int32), np.array([0, LENGTH]), np.array([CONTEXT])
    pair = np.array([[0, 1]], np.int16)
    tokens = Tokens(head.name, (), 0, ids, ends, contexts, ("en", "fr"), pair, Vocabulary(1, 0, ()))
    try:
        depends = depends_on_padding(model, head)
        with torch.random.fork_rng(devices=[]):
            arranged = method.forward_arguments(tokens, np.array([0]), torch.device("cpu"), training=True)
            answers(model.train(), head, **arranged).square().sum().backward()
    except Exception as error:  # Models of transformers raise errors of many types.
        return f"an encoder of type {kind} does not compute with method {base} ({first_sentence(error)}): {INSTEAD}"
    if any(trained[name].grad is None for name in added if name in trained):
        return f"method {base} changes nothing in what an encoder of type {kind} computes: {INSTEAD}"
    if depends:
        return (
            f"with method {base}, an encoder of type {kind} gives other scores with the padding after an input: "
            f"{INSTEAD}"
        )
    return None
