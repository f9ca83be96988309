"""What a process keeps from one evaluation to the next: an encoder, and what it has found out about files of tokens."""

import copy
import gc
import weakref
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

# The facts that are kept, such as tokens, whose values stay in their files.
FACTS = 64


class Keeper:
    """Keeps the encoder, with a head, of the last evaluation in this process: at most one.

    Each evaluation takes a model of its own, which shares the weights of the encoder. Whatever a method adds to the model,
    and whatever weights a run replaces in it, the encoder stays as it was loaded, and so does its copy on the GPU. An
    encoder whose weights were changed in place all the same is loaded again.

    Random numbers are those of a process that evaluates nothing else: torch's generator is in the same state when an encoder is
    loaded, and when a method is installed in a model.

    Attributes:
        models: the number of models that were taken.
    """

    def __init__(self) -> None:
        import torch

        self.models = 0
        self._first = self._loaded = torch.get_rng_state()
        self._identity: Any = None
        self._encoder: PreTrainedModel | None = None
        self._version = 0
        # Address of a weight of the encoder -> the same weight on the GPU.
        self._placed: dict[int, torch.Tensor] = {}
        self._last: Callable[[], PreTrainedModel | None] = lambda: None
        self._facts: dict[Hashable, Any] = {}

    def model(self, identity: Any, load: Callable[[], "PreTrainedModel"]) -> "PreTrainedModel":
        """A model whose weights are those of an encoder.

        Args:
            identity: identifies the encoder, the head and the files from which `load` loads both.
        """
        import torch

        self.models += 1
        # A hook of a model may refer to the model, whose memory this evaluation needs. Few objects are younger than the model.
        for generation in (1, 2):
            if self._last() is not None:
                gc.collect(generation)
        if self._encoder is None or self._identity != identity or self._changes(self._encoder) != self._version:
            # The memory of the encoder before this one is free while this one is loaded.
            self._encoder, self._placed = None, {}
            torch.set_rng_state(self._first)
            encoder = load()
            self._loaded, self._identity, self._version = torch.get_rng_state(), identity, self._changes(encoder)
            self._encoder = encoder
        torch.set_rng_state(self._loaded)
        shared: dict[int, Any] = {}
        for weight in self._encoder.parameters():
            shared[id(weight)] = alias = torch.nn.Parameter(weight.detach(), weight.requires_grad)
            alias.__dict__.update(weight.__dict__)
        model = copy.deepcopy(self._encoder, shared)
        self._last = weakref.ref(model)
        return model

    def fact(self, identity: Hashable, find: Callable[[], Any]) -> Any:
        """What `find` has returned for this identity, of the last `FACTS` that were asked for."""
        found = self._facts.pop(identity) if identity in self._facts else find()
        self._facts[identity] = found
        if len(self._facts) > FACTS:
            del self._facts[next(iter(self._facts))]
        return found

    def place(self, model: "PreTrainedModel", device: "torch.device") -> None:
        """Move a model that `model` has returned to a device. The weights of the encoder are there already."""
        if self._encoder is None or device.type == "cpu" or self._changes(self._encoder) != self._version:
            model.to(device)
            return
        if not self._placed:
            self._placed = {weight.data_ptr(): weight.detach().to(device) for weight in self._encoder.parameters()}

        def move(tensor: "torch.Tensor") -> "torch.Tensor":
            placed = self._placed.get(tensor.data_ptr())
            return tensor.to(device) if placed is None or placed.shape != tensor.shape else placed

        # As in `model.to`.
        model._apply(move)

    @staticmethod
    def _changes(encoder: "PreTrainedModel") -> int:
        """How often the weights of an encoder, or of models that share them, were changed in place."""
        return sum(weight._version for weight in encoder.parameters())
