"""The shape of the tree: small files, small folders, and a test file for each module where a reader looks for it."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
UNIT = ROOT / "tests" / "unit"
LIBRARY = ROOT / "src" / "xlgrid"
MODULES = sorted(
    path.relative_to(LIBRARY) for path in LIBRARY.rglob("*.py") if path.stem not in ("__init__", "__main__")
)
# Most lines of a file, and most Python files of a folder.
LINES, FILES = 450, 14


def test_a_module_has_the_test_file_that_a_reader_looks_for() -> None:
    missing = [str(module) for module in MODULES if not (UNIT / module.with_name(f"test_{module.name}")).exists()]
    assert missing == [], "each module has a test file of its name, in the folder of its package"


def test_a_file_is_short() -> None:
    lines = {str(module): len((LIBRARY / module).read_text().splitlines()) for module in MODULES}
    assert {name: count for name, count in lines.items() if count > LINES} == {}


def test_a_folder_has_few_files() -> None:
    counts = {
        str(folder.relative_to(LIBRARY)): len([*folder.glob("*.py")])
        for folder in [LIBRARY, *(path for path in LIBRARY.rglob("*") if path.is_dir())]
    }
    assert {name: count for name, count in counts.items() if count > FILES} == {}
