"""Each module has a test file where a reader looks for it."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
UNIT = ROOT / "tests" / "unit"
LIBRARY = ROOT / "src" / "xlgrid"
MODULES = sorted(
    path.relative_to(LIBRARY) for path in LIBRARY.rglob("*.py") if path.stem not in ("__init__", "__main__")
)


def test_a_module_has_the_test_file_that_a_reader_looks_for() -> None:
    missing = [str(module) for module in MODULES if not (UNIT / module.with_name(f"test_{module.name}")).exists()]
    assert missing == [], "each module has a test file of its name, in the folder of its package"
