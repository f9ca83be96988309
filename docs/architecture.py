"""Draw the packages of xlgrid and their imports, as the code has them: `python docs/architecture.py` writes architecture.svg.

Each row is a package, in the order that `[tool.importlinter]` of pyproject.toml states. A dot in a row means that the package
imports the package of that column. Since imports only go up the list, all dots lie below the diagonal.
"""

import ast
import tomllib
from pathlib import Path
from xml.sax.saxutils import escape

import grimp

ROOT = Path(__file__).parents[1]
PICTURE = Path(__file__).with_suffix(".svg")
# Sizes in pixels: height of a row and width of a column, width of the names, height of the heading.
STEP, NAMES, HEADING = 22, 92, 92
STYLE = """
text { font: 13px sans-serif; fill: #24292f }
.purpose { fill: #57606a }
.row { fill: #f6f8fa }
.self { fill: #d0d7de }
.import { fill: #0969da }
"""


def packages() -> list[str]:
    """The names of the packages, from the lowest layer to the highest, without `__main__`, which only calls `cli`."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    [layers] = [contract["layers"] for contract in settings["contracts"] if contract["type"] == "layers"]
    return [name for name in layers[::-1] if name != "__main__"]


def imports(names: list[str]) -> set[tuple[str, str]]:
    """Pairs of packages of which the first imports the second, in any of its modules."""
    graph = grimp.build_graph("xlgrid", cache_dir=None, exclude_type_checking_imports=True)
    return {
        (name, other)
        for name in names
        for other in names
        if name != other
        and graph.direct_import_exists(importer=f"xlgrid.{name}", imported=f"xlgrid.{other}", as_packages=True)
    }


def purpose(name: str) -> str:
    """The first line of a package's docstring, without its full stop."""
    folder = ROOT / "src" / "xlgrid" / name
    path = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
    lines = (ast.get_docstring(ast.parse(path.read_text())) or "").splitlines()
    if not lines:
        raise ValueError(f"{path.relative_to(ROOT)} has no docstring: its first line says what the package is for")
    return lines[0].rstrip(".")


def drawing() -> str:
    """The picture as SVG."""
    names = packages()
    edges = imports(names)
    purposes = {name: purpose(name) for name in names}
    text_x = NAMES + STEP * len(names) + 12
    width = text_x + 7 * max(map(len, purposes.values()))
    height = HEADING + STEP * len(names) + 8
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
        f'<style>{STYLE}</style><rect width="100%" height="100%" fill="#fff"/>',
    ]
    for row, name in enumerate(names):
        top = HEADING + STEP * row
        middle = top + STEP / 2
        column = NAMES + STEP * (row + 0.5)
        if row % 2 == 0:
            parts.append(f'<rect class="row" x="0" y="{top}" width="{width}" height="{STEP}"/>')
        parts += [
            f'<text x="8" y="{middle + 4:g}">{name}</text>',
            f'<text transform="translate({column + 4:g} {HEADING - 8}) rotate(-60)">{name}</text>',
            f'<rect class="self" x="{column - 4:g}" y="{middle - 4:g}" width="8" height="8"/>',
            f'<text class="purpose" x="{text_x}" y="{middle + 4:g}">{escape(purposes[name])}</text>',
        ]
        for other_column, other in enumerate(names):
            if (name, other) in edges:
                x = NAMES + STEP * (other_column + 0.5)
                parts.append(
                    f'<circle class="import" cx="{x:g}" cy="{middle:g}" r="5"><title>{name} imports {other}</title></circle>'
                )
    return "\n".join([*parts, "</svg>\n"])


if __name__ == "__main__":
    PICTURE.write_text(drawing())
