"""A study as a Provenance Run Crate: its workflow, results and exhibits, and the jobs that made them, as an RO-Crate.

The profile is https://w3id.org/ro/wfrun/provenance/0.5, on RO-Crate 1.1. Data, weights and tokens stay outside, because
they are large and their licences may not allow copies; the crate has their SHA-256.
"""

import csv
import json
import mimetypes
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import quote
from zipfile import ZIP_DEFLATED, ZipFile

from xlgrid.base.files import whole
from xlgrid.base.provenance import version
from xlgrid.plan.plan import Plan
from xlgrid.preflight.fetch import project_lock
from xlgrid.products import kinds
from xlgrid.products.exhibits import Exhibit
from xlgrid.products.product import Product, flat
from xlgrid.products.report import Report, StudyCopy
from xlgrid.report.trace import PACKAGES, packages, read_record, sha256

METADATA = "ro-crate-metadata.json"
CRATE, RUNS = "https://w3id.org/ro/crate/1.1", "https://w3id.org/ro/wfrun"
CONTEXT = [f"{CRATE}/context", "https://w3id.org/ro/terms/workflow-run/context"]
WORKFLOW = "https://w3id.org/workflowhub/workflow-ro-crate/1.0"
PROFILES = {
    **{f"{RUNS}/{name}/0.5": f"{name.capitalize()} Run Crate" for name in ("process", "workflow", "provenance")},
    WORKFLOW: "Workflow RO-Crate",
}
# The stages whose files are in the crate, except for weights.
STAGES = ("train", "evaluate", "exhibits", "report")
PYPI = "https://pypi.org/project"
WEIGHTS = (".safetensors", ".tar")
# The files of a project that make the results.
CODE = ("Snakefile", "config.yaml", "workflow/Snakefile", "rules/*.smk", "envs/*.yaml", str(PACKAGES))
UNLICENSED = "The authors state no licence: ask them."

Entity = dict[str, Any]


def write(plan: Plan, output: Path, licence: str | None = None) -> str:
    """Write the crate of a study to a folder, or to a file `.zip`.

    Args:
        licence: the licence of the results, such as https://creativecommons.org/licenses/by/4.0/.

    Returns:
        A sentence with the numbers of files and jobs in the crate.

    Raises:
        ValueError: the working directory has no Snakefile, no result exists, or the folder is not empty.
    """
    if not Path("Snakefile").is_file():
        raise ValueError(f"no Snakefile in {Path.cwd()}, which the crate needs: run this in the folder of the project")
    products = [product for product in plan.products if Path(product.path).exists()]
    if not any(product.stage == "evaluate" for product in products):
        raise ValueError(f"study {plan.study.name} has no results yet: make some of them first")
    files = {str(file): file for pattern in CODE for file in sorted(Path().glob(pattern))}
    if (lock := Path(project_lock())).is_file():
        files[lock.name] = lock
    files |= {
        StudyCopy(plan.study.name, each.study.name).path: each.path for each in (*plan.ancestors, plan) if each.path
    }
    for product in products:
        files |= {file: Path(file) for file in product.outputs(plan.study) if _is_inside(product, file)}
    described = {"@context": CONTEXT, "@graph": [*_graph(plan, products, files, licence)]}
    text = json.dumps(described, ensure_ascii=False, indent=1) + "\n"
    if output.suffix == ".zip":
        with whole(output) as aside, ZipFile(aside, "w", ZIP_DEFLATED) as archive:
            archive.writestr(METADATA, text)
            for name, path in files.items():
                archive.write(path, name)
    else:
        if output.exists() and any(output.iterdir()):
            raise ValueError(f"{output} is not empty: name another folder, or a file .zip")
        for name, path in files.items():
            (output / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, output / name)
        (output / METADATA).write_text(text, encoding="utf-8")
    return f"wrote {output}: {len(files):,} files, and {len(products):,} jobs of study {plan.study.name}"


def _is_inside(product: Product, file: str) -> bool:
    return product.stage in STAGES and not file.endswith(WEIGHTS) and Path(file).is_file()


def _entity(at: str, kind: str, /, **properties: Any) -> Entity:
    return {"@id": at, "@type": kind, **{key: value for key, value in properties.items() if value}}


def _refs(names: Iterable[str]) -> Entity | list[Entity]:
    """References to entities. The specification wants a single one without a list."""
    found = [{"@id": name} for name in dict.fromkeys(names)]
    return found[0] if len(found) == 1 else found


def _software(at: str, name: str, version: str) -> Entity:
    url = at if at.startswith(PYPI) else f"{PYPI}/xlgrid/"
    return _entity(at, "SoftwareApplication", name=name, softwareVersion=version, url=url)


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _graph(plan: Plan, products: Sequence[Product], files: Mapping[str, Path], licence: str | None) -> Iterator[Entity]:
    """The entities of the crate: itself, its files, the workflow with its tools and parameters, and the jobs."""
    study, name = plan.study, plan.study.name
    named = {file: quote(file, safe="/+~@") for file in files}
    jobs = [_job(plan, product, named) for product in products]
    records = filter(None, (_record(product) for product in products))
    required = [
        _software(f"{PYPI}/{package}/{quote(value)}/", package, value)
        for package, values in packages(records).items()
        for value in values
    ]
    made_by = {kind: f"xlgrid: {' or '.join(kind.rules)}" for kind in kinds() if kind in {*map(type, products)}}
    tools = [_software(f"#{kind.__name__}", title, version()) for kind, title in made_by.items()]
    shown = {f"#exhibit/{each}": Exhibit(name, each).outputs(study) for each in study.exhibits}
    shown = {parameter: [named[file] for file in made if file in named] for parameter, made in shown.items()}
    examples = {"#study": [named[StudyCopy(name, name).path]]} | {key: made for key, made in shown.items() if made}
    of_file = {file: parameter for parameter, made in examples.items() for file in made}
    ended = max(job["endTime"] for job in jobs)
    about = {"name": study.title, "description": study.description or study.title, "datePublished": ended}
    yield _entity(METADATA, "CreativeWork", about={"@id": "./"}, conformsTo=_refs([CRATE, WORKFLOW]))
    yield _entity(
        "./",
        "Dataset",
        **about,
        license={"@id": licence or "#licence"},
        conformsTo=_refs(PROFILES),
        hasPart=_refs(named.values()),
        mainEntity={"@id": "Snakefile"},
        mentions=_refs(["#run", *(job["@id"] for job in jobs)]),
    )
    yield _entity(licence or "#licence", "CreativeWork", name=licence or UNLICENSED)
    for uri, title in PROFILES.items():
        yield _entity(uri, "CreativeWork", name=title, version=uri.rpartition("/")[2])
    workflow = {
        "@type": ["File", "SoftwareSourceCode", "ComputationalWorkflow"],
        "conformsTo": {"@id": "https://bioschemas.org/profiles/ComputationalWorkflow/1.0-RELEASE"},
        "programmingLanguage": {"@id": "#snakemake"},
        "version": version(),
        "input": _refs(["#study"]),
        "output": _refs(parameter for parameter in examples if parameter != "#study"),
        "hasPart": _refs(tool["@id"] for tool in tools),
        "softwareRequirements": _refs(package["@id"] for package in required),
    }
    for file, path in files.items():
        kind = mimetypes.guess_type(file)[0] or "text/plain"
        facts = {"name": file, "encodingFormat": kind, "contentSize": str(path.stat().st_size), "sha256": sha256(path)}
        example = {"exampleOfWork": {"@id": of_file[named[file]]}} if named[file] in of_file else {}
        yield _entity(named[file], "File", **facts, **example) | (workflow if file == "Snakefile" else {})
    engine = {"name": "Snakemake", "url": "https://snakemake.readthedocs.io", "version": metadata.version("snakemake")}
    yield _entity("#snakemake", "ComputerLanguage", **engine)
    yield from (*required, *tools)
    for parameter, made in examples.items():
        title = "the study" if parameter == "#study" else study.exhibits[parameter.partition("/")[2]].title
        yield _entity(parameter, "FormalParameter", additionalType="File", name=title, workExample=_refs(made))
    yield _entity(
        "#run",
        "CreateAction",
        name=f"The study {name}",
        description=f"snakemake --cores all {Report(name).path}",
        instrument={"@id": "Snakefile"},
        startTime=min(job["startTime"] for job in jobs),
        endTime=ended,
        object=_refs(examples["#study"]),
        result=_refs(file for made in shown.values() for file in made),
    )
    yield from jobs
    read = (file for product in products for file in (*flat(product.inputs(plan)), *product.outputs(study)))
    for file in dict.fromkeys(read):
        if file not in files and Path(file).is_file():
            yield _entity(f"#{quote(file)}", "CreativeWork", name=file, sha256=sha256(file))


def _job(plan: Plan, product: Product, named: Mapping[str, str]) -> Entity:
    """The job that made a product, with its times, inputs and outputs; files outside the crate have names with #."""
    record = _record(product) or {}
    seconds = float(record.get("seconds", 0))
    # Snakemake measures the stages before training; other records have their time.
    if product.stage not in STAGES and (benchmark := Path(product.benchmark(plan.study).path)).is_file():
        with benchmark.open(encoding="utf-8", newline="") as file:
            seconds = sum(float(line["s"]) for line in csv.DictReader(file, delimiter="\t"))
    ended = Path(product.path).stat().st_mtime
    made_by, device = record.get("command") or product.job(plan.study), record.get("device")
    files = {"object": flat(product.inputs(plan)), "result": product.outputs(plan.study)}
    there = {side: [file for file in paths if Path(file).is_file()] for side, paths in files.items()}
    return _entity(
        f"#job/{quote(product.path)}",
        "CreateAction",
        name=product.job(plan.study),
        description=f"{made_by}, on {device}" if device else made_by,
        instrument={"@id": f"#{type(product).__name__}"},
        startTime=_time(ended - seconds),
        endTime=_time(ended),
        **{side: _refs(named.get(file) or f"#{quote(file)}" for file in paths) for side, paths in there.items()},
    )


def _record(product: Product) -> dict[str, Any] | None:
    """The record of a result, which says how it was made."""
    return read_record(product.path) if product.stage in STAGES and product.path.endswith(".json") else None
