"""The shape of the tree: small files, small folders, and a test file for each module where a reader looks for it."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "src" / "xlgrid"
MODULES = sorted(path.relative_to(LIBRARY) for path in LIBRARY.rglob("*.py") if path.name != "__init__.py")
# Modules without a test file of their name, each with the reason. This list may only become shorter.
WITHOUT: dict[str, str] = {}


def expected(module: Path) -> Path:
    """Where a reader looks for the tests of a module."""
    return ROOT / "tests" / "unit" / module.with_name(f"test_{module.name}")


def test_a_module_has_the_test_file_that_a_reader_looks_for() -> None:
    missing = [str(module) for module in MODULES if not expected(module).exists()]
    assert missing == sorted(WITHOUT), "the exceptions are those in WITHOUT, and none that has a test file by now"


def test_a_file_is_short() -> None:
    long = {str(module): len((LIBRARY / module).read_text().splitlines()) for module in MODULES}
    assert {name: lines for name, lines in long.items() if lines > 450} == {}


def test_a_folder_has_few_files() -> None:
    folders = {path.parent for path in LIBRARY.rglob("*.py")}
    counts = {str(folder.relative_to(LIBRARY)): len([*folder.glob("*.py")]) for folder in folders}
    assert {name: count for name, count in counts.items() if count > 14} == {}
