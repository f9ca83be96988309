"""A Python file outside the packages as a module: a script of docs/ or benchmarks/, or a file that a test has written."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType


def load_module(path: Path) -> ModuleType:
    """The file as a module of its name, which no other import sees."""
    spec = spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
