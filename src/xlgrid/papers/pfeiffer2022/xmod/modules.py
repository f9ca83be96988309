"""XLM-R with a module for each language in every layer (Pfeiffer et al. 2022, section 3).

In a transformer layer, let s be the sum of the output and the input of the feed-forward block, and LN the last
LayerNorm. With the module of the input's language,

    z = LN(s)        out = LN(z + W2 gelu(W1 z))

SHARED has one module for all languages. The modules wrap the modules of transformers' XLM-R. All parameters have the
names of the Xmod classes of transformers, whose checkpoints are read and written.
"""

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import layer_norm

from xlgrid.base.arrays import Segments
from xlgrid.base.names import unknown
from xlgrid.heads.families import ADDED, FAMILIES, SHARED, module_of
from xlgrid.heads.transfer import transferred

if TYPE_CHECKING:
    from transformers import PreTrainedModel

# The name of the dictionary of modules in a layer.
DICTIONARY = FAMILIES["xmod"].modules
# The settings of a checkpoint for layers as described above. Other values mean another order of LayerNorms.
WIRING = {"pre_norm": False, "adapter_layer_norm": False, "adapter_reuse_layer_norm": True, "ln_before_adapter": True}


class LanguageModule(nn.Module):
    """The bottleneck of a language: W2 gelu(W1 z)."""

    def __init__(self, config: Any) -> None:
        from transformers.activations import ACT2FN

        super().__init__()
        inner = config.hidden_size // config.adapter_reduction_factor
        self.dense1, self.dense2 = nn.Linear(config.hidden_size, inner), nn.Linear(inner, config.hidden_size)
        self.activation = ACT2FN[config.hidden_act]
        # If only the size of the model is counted, its tensors have no values to draw, and torch would waste time.
        for layer in (self.dense1, self.dense2) if not self.dense1.weight.is_meta else ():
            nn.init.normal_(layer.weight, std=config.initializer_range)
            nn.init.zeros_(layer.bias)

    def forward(self, states: Tensor) -> Tensor:
        out: Tensor = self.dense2(self.activation(self.dense1(states)))
        return out


class Routes(NamedTuple):
    """The modules that compute a batch.

    Attributes:
        names: the names of the modules, without repetition.
        rows: the inputs of each module; empty if a single module computes all inputs.
        places: for each input, its place in the concatenation of `rows`.
    """

    names: tuple[str, ...]
    rows: tuple[Tensor, ...] = ()
    places: Tensor | None = None


class Router:
    """The modules of a model by language, and the routes of the current batch. All layers share the router."""

    def __init__(self, modules: Iterable[str]) -> None:
        self.modules = tuple(modules)
        self.added: tuple[str, ...] = ()
        self.routes: Routes | None = None

    @property
    def is_shared(self) -> bool:
        """Whether all languages share one module."""
        return self.modules == (SHARED,)

    def module_for(self, language: str) -> str:
        """The module of a language.

        Raises:
            ValueError: the encoder has no module for the language.
        """
        if self.is_shared:
            return SHARED
        if language in self.added:
            return ADDED
        if language not in self.modules:
            named = [name for name in self.modules if name.startswith(f"{language}_")]
            hint = (
                f"name it in `modules` of the encoder, as {{{language}: {named[0]}}}"
                if named
                else "add an MLM run in this language"
            )
            raise ValueError(f"the encoder has no module of {unknown('language', language, self.modules)}: {hint}")
        return language

    def compute(self, modules: nn.ModuleDict, states: Tensor) -> Tensor:
        """The outputs of the modules of a layer, each for its inputs only."""
        routes = self.routes or (Routes((SHARED,)) if self.is_shared else None)
        if routes is None:
            raise ValueError(
                "the languages of the inputs are unknown: pass the result of `language_arguments` to the model's "
                "forward"
            )
        if not routes.rows:
            out: Tensor = modules[routes.names[0]](states)
            return out
        assert routes.places is not None
        parts = [
            modules[name](states.index_select(0, rows)) for name, rows in zip(routes.names, routes.rows, strict=True)
        ]
        return torch.cat(parts).index_select(0, routes.places)


class ModularNorm(nn.Module):
    """The last LayerNorm of a layer, with the modules of the layer before it. It replaces `output.LayerNorm`, whose
    parameters keep their names."""

    def __init__(self, output: Any, router: Router) -> None:
        super().__init__()
        norm = output.LayerNorm
        self.weight, self.bias, self.eps = norm.weight, norm.bias, norm.eps
        # A tuple hides the modules that belong to `output` and must not be registered twice.
        self.parts = (output.get_submodule(DICTIONARY), output.dropout)
        self.router = router

    def norm(self, states: Tensor) -> Tensor:
        return layer_norm(states, self.weight.shape, self.weight, self.bias, self.eps)

    def forward(self, states: Tensor) -> Tensor:
        modules, dropout = self.parts
        states = self.norm(states)
        return self.norm(dropout(self.router.compute(modules, states)) + states)


class Modular:
    """The interface of a model with modules to languages, see `xlgrid.models.by_language.ByLanguage`."""

    base_model: Any
    device: torch.device

    def language_arguments(self, segments: Segments) -> dict[str, Routes]:
        """The argument of `forward` with the modules that compute a batch; empty for SHARED."""
        router: Router = self.base_model.router
        if router.is_shared:
            return {}
        if segments.switched.any():
            raise ValueError("a module is for inputs in one language, got inputs in two: leave out pairs of languages")
        languages = segments.language_of[:, 0]
        name_of = [router.module_for(segments.languages[number]) for number in np.unique(languages).tolist()]
        names = tuple(dict.fromkeys(name_of))
        if len(names) == 1:
            return {"routes": Routes(names)}
        numbers = np.zeros(len(segments.languages), np.int64)
        numbers[np.unique(languages)] = [names.index(name) for name in name_of]
        modules = numbers[languages]
        order = np.argsort(modules, kind="stable")
        rows = np.split(order, np.cumsum(np.bincount(modules))[:-1])
        places, *of_modules = (transferred(torch.from_numpy(part), self.device) for part in (np.argsort(order), *rows))
        return {"routes": Routes(names, tuple(of_modules), places)}

    def language_parts(self, languages: Iterable[str]) -> tuple[str, ...]:
        """The modules that compute inputs in some languages, as `module:language`."""
        modules = [(self.base_model.router.module_for(language), language) for language in languages]
        return tuple(dict.fromkeys(f"module:{language if name == ADDED else name}" for name, language in modules))

    def give_languages(self, names: Iterable[str], languages: Iterable[str]) -> None:
        """Assign the module of `add_module` to some languages if it has one of the given parameters."""
        if not any(module_of(name) == ADDED for name in names):
            return
        router: Router = self.base_model.router
        router.added = tuple(languages)
        if known := [code for code in router.added if code in router.modules]:
            raise ValueError(
                f"the encoder has a pre-trained module for {', '.join(known)}, which is not replaced: do not add this "
                "language"
            )


@cache
def with_modules(xlmr: Any) -> Any:
    """A subclass of a class of transformers for XLM-R with a head, whose models have modules for the languages of an
    `XmodConfig`.

    Torch's generator draws the weights of new modules with the distribution of XLM-R.
    """
    from transformers import XmodConfig

    class WithModules(Modular, xlmr):
        config_class = XmodConfig

        def __init__(self, config: Any) -> None:
            super().__init__(config)
            install(self)

    WithModules.__name__ = WithModules.__qualname__ = xlmr.__name__.replace("XLMRoberta", "Xmod")
    return WithModules


def install(model: Any) -> None:
    """Add the modules that the configuration of an XLM-R lists to all of its layers, in place.

    Raises:
        ValueError: the configuration has another order of LayerNorms.
    """
    wrong = [name for name, value in WIRING.items() if getattr(model.config, name) != value]
    if wrong:
        got = ", ".join(f"{name} {getattr(model.config, name)}" for name in wrong)
        raise ValueError(
            f"modules must be between two uses of the last LayerNorm of a layer, got {got}: use another encoder"
        )
    router = Router(model.config.languages)
    for output in _outputs(model):
        output.add_module(DICTIONARY, nn.ModuleDict({name: LanguageModule(model.config) for name in router.modules}))
        output.LayerNorm = ModularNorm(output, router)
    model.base_model.router = router
    model.base_model.register_forward_pre_hook(_take_routes, with_kwargs=True)


def add_module(model: "PreTrainedModel") -> None:
    """Add a module for a new language to all layers. SHARED and models without modules are unchanged."""
    router = router_of(model)
    if router is None or router.is_shared:
        return
    for output in _outputs(model):
        output.get_submodule(DICTIONARY)[ADDED] = LanguageModule(model.config).to(output.LayerNorm.weight.device)


def router_of(model: "PreTrainedModel") -> Router | None:
    """The router of a model; None if the model has no modules for languages."""
    # Models that tests define have no base model.
    return getattr(getattr(model, "base_model", None), "router", None)


def _take_routes(encoder: Any, inputs: Any, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    # A method of the model would share a closure with it, which a copy of the model would share, too.
    encoder.router.routes = options.pop("routes", None)
    return inputs, options


def _outputs(model: Any) -> list[Any]:
    return [layer.output for layer in model.base_model.encoder.layer]
