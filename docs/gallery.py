"""Draw every kind of exhibit of the core with made-up scores: `python docs/gallery.py` writes gallery.md and gallery/*.png.

gallery.yaml is the study. Its scores follow from names alone: a target is easier near the source, and methods differ a little.
"""

import json
import random
import re
import tempfile
from contextlib import chdir
from pathlib import Path

from PIL import Image

from xlgrid.evaluation.cell import pack
from xlgrid.exhibits.kinds import KINDS
from xlgrid.methods.variants import plain, settings_of
from xlgrid.plan.load import load_plan
from xlgrid.plan.plan import Plan
from xlgrid.products.evaluate import Cell

HERE = Path(__file__).parent
STUDY, PAGE, PICTURES = HERE / "gallery.yaml", HERE / "gallery.md", HERE / "gallery"
HEAD = """# Gallery

Every kind of exhibit, with the part of a study that describes it. The scores are made up. `labels` gives the [display names](how-to/export.md#display-names), and `width` the place of an
exhibit in [a paper](how-to/export.md#latex): figures are as wide as a column or a page, with the same letters. Each exhibit is also CSV, Markdown and LaTeX.
[The reference](reference/study.md) has all keys, and [a package](how-to/exhibit.md) adds kinds of its own. Papers bring kinds, too: `attention` and `masks`
([Foroutan et al. 2023](papers/foroutan2023.md)), `best` and `parameters` ([Pfeiffer et al. 2020](papers/pfeiffer2020.md)), and `pair-attention` ([Luo et al. 2021](papers/luo2021.md)).

`python docs/gallery.py` writes this page from `docs/gallery.yaml`. All exhibits on it share this study:

"""


def score(cell: Cell) -> float:
    """The made-up score of a cell, in percent."""
    languages = ["en", "de", "fr", "es", "ru", "sw", "yo", "ha"]
    draw = random.Random(" ".join(map(str, cell)))
    apart = abs(languages.index(str(cell.source)) - languages.index(str(cell.target)))
    method = {"full-ft": 3.0, "bitfit": 0.0, "adapters": 2.0}[plain(cell.method)]
    few = {10: -30.0, 100: -14.0, 1000: -4.0}.get(settings_of(cell.method).get("examples", 0), 0.0)
    hard = 2.5 * languages.index(str(cell.target)) + 9 * (cell.task == "nli")
    other = random.Random(f"{cell.task} {cell.method} {cell.target}").gauss(0, 2)
    return 88 - 4 * apart - hard + method + few + other + 4 * (cell.encoder == "xlmr") + draw.gauss(0, 1.2)


def write(plan: Plan) -> None:
    """Write a file for each cell of the study."""
    for cell in plan.cells:
        metric = {"ner": "f1", "nli": "accuracy"}[cell.task]
        record = {**cell._asdict(), "scores": {metric: score(cell)}, "metric": {"name": metric}, "head": "embed"}
        Path(cell.path).parent.mkdir(parents=True, exist_ok=True)
        Path(cell.path).write_text(json.dumps(record | {"labels": [], "n": 2, "outcomes": pack([1, 0])}))


def smaller(source: Path, target: Path) -> None:
    """Write a picture with half as many pixels, in a palette."""
    with Image.open(source) as picture:
        half = picture.convert("RGB").resize((picture.width // 2, picture.height // 2), Image.Resampling.LANCZOS)
        half.quantize(64, dither=Image.Dither.NONE).save(target, optimize=True)


def draw(folder: Path) -> str:
    """Write the pictures to `folder`, and return the text of the page."""
    text = STUDY.read_text()
    before, _, exhibits = text.partition("\nexhibits:\n")
    parts = [f"{HEAD}```yaml\n{before.partition(chr(10))[2]}```\n"]
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as aside, chdir(aside):
        Path("gallery.yaml").write_text(text)
        plan = load_plan("gallery.yaml")
        write(plan)
        for block in re.split(r"(?m)^(?=  \w)", exhibits)[1:]:
            name = block.partition(":")[0].strip()
            exhibit = plan.study.exhibit(name)
            exhibit.render(name, plan, "made")
            first = " ".join((KINDS[name].__doc__ or "").partition("\n\n")[0].split())
            if exhibit.is_table:
                shown = Path(f"made/{name}.md").read_text().strip()
            else:
                smaller(Path(f"made/{name}.png"), folder / f"{name}.png")
                shown = f"![{exhibit.title}](gallery/{name}.png)"
            parts.append(f"## {name}\n\n{first}\n\n```yaml\nexhibits:\n{block.rstrip()}\n```\n\n{shown}\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(draw(PICTURES))
