"""The names in an encoder with modules for languages, which are those of transformers' Xmod classes."""

# The model type of these encoders in config.json, and the place of a module in the name of a parameter.
XMOD, MODULES = "xmod", "adapter_modules"
# The module that SHARED has for all languages.
SHARED = "shared"
# The module of a language that an encoder gets after its pre-training.
ADDED = "added"


def module_of(name: str) -> str | None:
    """The module, a language's or one of the two above, to which a parameter belongs; None if it belongs to no module."""
    parts = name.split(".")
    return parts[parts.index(MODULES) + 1] if MODULES in parts else None


def is_pretrained_module(name: str) -> bool:
    """Whether a parameter belongs to the module of a language that was pre-trained with the encoder."""
    return module_of(name) not in (None, SHARED, ADDED)
