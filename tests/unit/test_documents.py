"""The pages of this project: links lead somewhere, the picture of the packages is the code's, profiles name its rules."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import get_args

import pytest
import yaml
from module_fixture import load_module
from pydantic import TypeAdapter
from shipped import STUDIES

from xlgrid.data.fetch import fetch_data
from xlgrid.data.formats import read_table
from xlgrid.plan.load import load_plan
from xlgrid.products.data import Data
from xlgrid.products.product import Product
from xlgrid.products.train import Run
from xlgrid.study.encoders import AnyEncoder
from xlgrid.study.load import read_lineage

ROOT = Path(__file__).parents[2]
PATTERNS = ("*.md", "docs/**/*.md", "packages/*/*.md", "benchmarks/*.md", "reference/*/*.md", "results/README.md")
PAGES = sorted(str(path.relative_to(ROOT)) for pattern in PATTERNS for path in ROOT.glob(pattern))
# Folders and files of this project that a page names in backticks.
NAMED = re.compile(r"`((?:src|rules|studies|tests|docs|benchmarks|envs|notebooks|packages|slurm|laptop)/[\w./-]+)`")


def text(page: str) -> str:
    return (ROOT / page).read_text()


def anchors(page: Path) -> list[str]:
    """The names by which GitHub links to the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]


def test_the_pages_are_found() -> None:
    assert {"README.md", "CONTRIBUTING.md", "docs/how-to/study.md", "results/README.md"} <= {*PAGES}


@pytest.mark.parametrize("page", PAGES)
def test_links_and_pictures_exist(page: str) -> None:
    broken = []
    for link in re.findall(r"\]\((?!https?:)([^)\s]+)\)", text(page)):
        path, _, anchor = link.partition("#")
        target = (ROOT / page).parent / path if path else ROOT / page
        # A link to one of two headings of the same words leads to the first.
        if not target.exists() or (anchor and anchors(target).count(anchor) != 1):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("page", PAGES)
def test_a_file_that_a_page_names_exists(page: str) -> None:
    content = text(page)
    written = {f"studies/{name}.yaml" for name in re.findall(r"^xlgrid new \w+ ([\w-]+)", content, re.MULTILINE)}
    # A study that the page shows right after its name is for the reader to write.
    missing = [
        named[1]
        for named in NAMED.finditer(content)
        if not any((folder / named[1]).exists() for folder in (ROOT, (ROOT / page).parent))
        and named[1] not in written
        and "```yaml" not in content[named.end() : named.end() + 400]
    ]
    assert missing == []


STUDIES_OF_PAGES = [
    pytest.param(block, id=f"{page}-{number}")
    for page in PAGES
    # A page about a package of the reader's shows a study that needs this package.
    if "entry-points" not in text(page)
    for number, block in enumerate(re.findall(r"^```yaml\n(.*?)^```", text(page), re.MULTILINE | re.DOTALL))
    if {"title", "grids"} <= (keys := yaml.safe_load(block)).keys() and keys.get("extends", "demo") in STUDIES
]


@pytest.mark.parametrize("block", STUDIES_OF_PAGES)
def test_a_study_on_a_page_has_no_mistakes(block: str, tmp_path: Path) -> None:
    (tmp_path / "page.yaml").write_text(block)
    assert load_plan(tmp_path / "page.yaml").cells


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages as `make docs` builds them: an unknown link or anchor, and a page outside the menu, is an error."""
    pytest.importorskip("mkdocs", reason="the site needs mkdocs-material, which is in the extra `docs`")
    folder = tmp_path_factory.mktemp("site")
    process = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stderr[-4000:]
    return folder


@pytest.mark.thorough
def test_the_site_has_every_page(site: Path) -> None:
    pages = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    assert {str(page) for page in pages if not (site / page).exists()} == set()
    assert (site / "executor.html").exists() and (site / "contributing.html").exists()


@pytest.mark.thorough
def test_a_reader_of_the_site_loads_nothing_from_the_network(site: Path) -> None:
    loaded = re.compile(r"""(?:<(?:script|img|iframe)[^>]*\bsrc=|<link[^>]*\bhref=)["']?((?:https?:)?//[^"' >]+)""")
    assert {link for page in site.rglob("*.html") for link in loaded.findall(page.read_text())} == set()
    font = re.compile(r"""url\(["']?((?:https?:)?//[^"')]+)""")
    styled = [path for kind in ("*.html", "*.css", "*.svg") for path in site.rglob(kind)]
    assert {link for path in styled for link in font.findall(path.read_text())} == set()


@pytest.mark.thorough
def test_no_link_of_the_site_is_left_to_a_file_that_it_lacks(site: Path) -> None:
    """Links to files outside docs/, such as a study, are text: the site has no such files."""
    broken = set()
    for page in site.rglob("*.html"):
        for link in re.findall(r'<a [^>]*href="([^"#:]+)(?:#[^"]*)?"', page.read_text()):
            if page.name != "404.html" and not (page.parent / link).exists():
                broken.add((page.name, link))
    assert broken == set()


def script(name: str) -> ModuleType:
    """A script of docs/ as a module."""
    return load_module(ROOT / "docs" / f"{name}.py")


def test_the_picture_of_the_packages_is_current() -> None:
    architecture = script("architecture")
    assert architecture.drawing() == architecture.PICTURE.read_text(), "run `python docs/architecture.py`"


def test_the_page_of_the_commands_is_current() -> None:
    commands = script("command_reference")
    assert commands.page() == commands.PAGE.read_text(), "run `python docs/command_reference.py`"


def test_the_page_of_the_paths_has_every_kind_of_product() -> None:
    """`{file}` is one of several names, which the page lists in its words."""
    page = text("docs/reference/paths.md").replace("{name}", "{exhibit}").replace("seed{n}", "seed{seed}")
    templates = {product.template.removeprefix("results/{study}/") for product in get_args(Product)}
    starts = {template.partition("{file}")[0].partition("{job}")[0] for template in templates}
    missing = {start for start in starts if start.partition("{stage}")[0].removesuffix("failed.txt") not in page}
    assert missing == set()


def test_the_walk_through_the_code_names_each_file_once() -> None:
    named = [name for name in NAMED.findall(text("docs/architecture.md")) if Path(name).suffix]
    assert named and sorted(named) == sorted(set(named))


def test_the_examples_of_bare_encoders_and_of_their_facts_are_a_study(tmp_path: Path) -> None:
    def example(page: str, heading: str) -> str:
        return text(page).partition(f"# {heading}\n")[2].partition("```yaml\n")[2].partition("```")[0]

    parts = (
        example("docs/how-to/retrieval.md", "Encoders without training"),
        example("docs/how-to/study.md", "Facts of encoders"),
    )
    (tmp_path / "s.yaml").write_text("title: X-MOD\nlanguages: [en, fr]\n" + "".join(parts))
    plan = load_plan(tmp_path / "s.yaml")
    assert len(plan.cells) == 4 and not plan.runs
    assert all(len(exhibit.cells(plan.cells, plan.study.facts)) == 4 for exhibit in plan.study.exhibits.values())
    assert plan.study.exhibits.keys() == {"over-languages", "of-each"}


def test_the_lines_for_a_cluster_are_of_rules_resources_and_settings_that_exist() -> None:
    block = (
        text("docs/papers/pfeiffer2022.md")
        .partition("## On a cluster\n")[2]
        .partition("```yaml\n")[2]
        .partition("```")[0]
    )
    lines = yaml.safe_load(block)
    profile = yaml.safe_load(text("slurm/profile.v9+.yaml"))
    assert (
        profile["set-resources"].keys() - {"attention", "label_data", "train_many"}
        <= lines["set-resources"].keys()
        <= rules()
    )
    readme = text("packages/snakemake-executor-plugin-submitit/README.md")
    resource_names = {name for resources in lines["set-resources"].values() for name in resources}
    settings = {name.removeprefix("submitit-") for name in lines.keys() - {"set-resources"}}
    assert resource_names and {name for name in resource_names | settings if f"`{name}`" not in readme} == set()


def rules() -> set[str]:
    """The names of this project's rules."""
    files = [ROOT / "workflow" / "Snakefile", *(ROOT / "rules").glob("*.smk"), *(ROOT / "src").rglob("rules.smk")]
    return {
        name
        for file in files
        for name in re.findall(r"^(?:use rule \w+ as|rule) (\w+)", file.read_text(), re.MULTILINE)
    }


@pytest.mark.parametrize("profile", ["slurm", "laptop"])
def test_a_profile_sets_resources_of_rules_that_exist(profile: str) -> None:
    entries = yaml.safe_load(text(f"{profile}/profile.v9+.yaml")).get("set-resources", {})
    assert {*entries} <= rules()
    if profile == "slurm":
        of_a_gpu = {name for name, resources in entries.items() if resources.get("gpus")}
        assert of_a_gpu == {"pretrain", "train", "train_many", "evaluate", "attention", "label_data"}


def test_the_example_of_labels_from_a_run_is_a_study(tmp_path: Path) -> None:
    example = (
        text("docs/how-to/translate-train.md")
        .partition("# Labels from a run\n")[2]
        .partition("```yaml\n")[2]
        .partition("```")[0]
    )
    keys = "title: NER\nlanguages: [en, de, fr]\nencoders: {xlmr-large: {hub: FacebookAI/xlm-roberta-large}}\nmethods: {full-ft: {}}\n"
    (tmp_path / "s.yaml").write_text(keys + example)
    plan = load_plan(tmp_path / "s.yaml")
    assert {run.source for run in plan.runs} == {"en", "en+de+fr"}
    [mixed] = {run._replace(seed=1) for run in plan.runs if "+" in run.source}
    teacher = Run("s", "panx", "xlmr-large", "full-ft", "en", 1)
    assert plan.rests_on(mixed).index(teacher) < plan.rests_on(mixed).index(mixed)


def test_the_example_of_types_of_files_is_a_study_that_reads_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    example = (
        text("docs/how-to/data.md").partition("### Types of files\n")[2].partition("```yaml\n")[2].partition("```")[0]
    )
    encoder = "{xlmr: {hub: FacebookAI/xlm-roberta-base}}"
    grids = "{pos: {task: [pos], encoder: [xlmr], method: [full-ft], source: [en], target: [yo], seed: [1]}}"
    rest = f"title: Files\nencoders: {encoder}\nmethods: {{full-ft: {{}}}}\ngrids: {grids}\n"
    (tmp_path / "s.yaml").write_text(rest + example)
    monkeypatch.chdir(tmp_path)
    word = "1\tAda\t_\tPROPN" + "\t_" * 6
    answer = {"id": "1", "question": "Who?", "answers": [{"text": "Ada", "answer_start": 0}]}
    squad = json.dumps({"data": [{"title": "", "paragraphs": [{"context": "Ada", "qas": [answer]}]}]})
    files = {
        ("pos", "yo", "test"): ("ud/UD_Yoruba-YTB/yo_ytb-ud-test.conllu", word),
        ("ner", "sw", "dev"): ("masakhane-ner/MasakhaNER2.0/data/swa/dev.txt", "mwaka B-DATE\n"),
        ("qa", "es", "test"): ("xquad/xquad.es.json", squad),
        ("qa", "en", "train"): ("squad/train-v1.1.json", squad),
    }
    study = load_plan(tmp_path / "s.yaml").study
    for (task, language, split), (name, contents) in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(contents)
        values = Data("s", task, language, split).settings(study) or {}
        columns, source = json.loads(str(values["columns"])), json.loads(str(values["source"]))
        fetch_data(str(values["kind"]), source, language, split, "out.parquet", "lock.yaml", columns)
        [row] = read_table("out.parquet").to_pylist()
        assert (row.get("tokens") or [row["context"]])[0] in {"Ada", "mwaka"}, (task, row)


def test_the_example_of_a_translation_is_a_study(tmp_path: Path) -> None:
    example = (
        text("docs/how-to/generation.md").partition("# Generation\n")[2].partition("```yaml\n")[2].partition("```")[0]
    )
    (tmp_path / "s.yaml").write_text("title: WMT14\nlanguages: [de, en]\n" + example)
    plan = load_plan(tmp_path / "s.yaml")
    assert {(run.method, run.source) for run in plan.runs} == {("full-ft", "en-de"), ("last-6", "en-de")}
    recipe = plan.study.recipe("wmt14", "xlmr-base", "last-6", "en-de", 1)
    assert (recipe.training.keep, recipe.training.label_smoothing) == ("average", 0.2)


def test_the_encoders_that_the_page_shows_are_encoders_of_a_study() -> None:
    example = yaml.safe_load(text("docs/how-to/encoder.md").partition("```yaml\n")[2].partition("```")[0])
    entries = {name: TypeAdapter(AnyEncoder).validate_python(entry) for name, entry in example["encoders"].items()}
    assert {name: (entry.origin["place"], entry.layers) for name, entry in entries.items()} == {
        "mbert": ("google-bert/bert-base-multilingual-cased", None),
        "mine": ("checkpoints/mine", None),
        "small": ("checkpoints/mine", 6),
    }


def test_the_first_page_leads_to_every_page() -> None:
    """The page of all papers leads to those about published numbers."""
    pages_outside = script("pages_outside")
    site_pages = {page for page in PAGES if page.startswith("docs/")} | {*pages_outside.PAGES}
    linked = {
        os.path.normpath(ROOT / first / ".." / link.partition("#")[0])
        for first in ("docs/index.md", "docs/papers/index.md")
        for link in re.findall(r"\]\((?!https?:)([^)\s]+)\)", text(first))
    }
    assert {page for page in site_pages if str(ROOT / page) not in linked} == {"docs/index.md"}


@pytest.mark.parametrize("command", sorted({*re.findall(r"`pytest ([^`]+)`", text("docs/checked.md"))}))
def test_a_command_that_compares_numbers_finds_its_tests(command: str) -> None:
    words = shlex.split(command)
    files = [
        file for word in words if word.startswith("tests/") for file in [ROOT / word, *(ROOT / word).rglob("*.py")]
    ]
    names = " ".join(
        re.findall(r"^def (test_\w+)", "".join(file.read_text() for file in files if file.is_file()), re.MULTILINE)
    )
    wanted = words[words.index("-k") + 1].split(" or ") if "-k" in words else ["test"]
    assert [word for word in wanted if word.lower() not in names.lower()] == []


def test_the_example_of_a_study_that_extends_takes_what_it_says(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "how-to" / "study.md").read_text()
    example, *_ = [block for block in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if "extends: demo" in block]
    (tmp_path / "own.yaml").write_text(example)
    plan = load_plan(tmp_path / "own.yaml")
    runs, cells = (Counter(result.study for result in results) for results in (plan.runs, plan.cells))
    assert runs["own"] == 4
    said = f"trains four runs, evaluates {cells['own']} cells, and shows them together with the demo's {cells['demo']}"
    assert said in " ".join(page.split())


def test_the_example_of_a_study_that_replaces_is_a_study(tmp_path: Path) -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "how-to" / "study.md").read_text(), re.DOTALL)
    [example] = [block for block in blocks if "replace:" in block]
    shutil.copy(STUDIES["pfeiffer2020"], tmp_path)
    mini = {"scratch": {"kind": "xlmr", "languages": ["qa1", "qb1"]}}
    encoders = {"encoders": dict.fromkeys(("mini-xlmr", "mini-bert", "mini-xlmr-large"), mini)}
    (tmp_path / "own.yaml").write_text(yaml.safe_dump({**yaml.safe_load(example), "title": "t", **encoders}))
    study = read_lineage(tmp_path / "own.yaml")[0].study
    assert study.grids["ner"].encoder == ["mini-xlmr"]
    assert study.grids["ner-encoders"].encoder == ["mini-bert", "mini-xlmr-large"]
    assert study.groups["ner"] == ["qa1", "qb1"] and study.grids["xcopa"].source == ["qa1"]
