"""The commands `xlgrid ...`, which the rules call and people can paste. Each command imports only the modules it needs."""

import gc
import json
import os
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from xlgrid.base.commandline import (
    Columns,
    Commands,
    EncoderFolder,
    File,
    Json,
    Layers,
    Ledger,
    OfStudy,
    OneSeparator,
    Output,
    OutputFolder,
    RunFolder,
    StudyName,
    VocabularyFolder,
    by_target,
    folder_of,
)
from xlgrid.warm import warm_up as warm_up

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Grids of cross-lingual transfer.",
)


def main() -> None:
    """Run a command and end the process.

    A grid is thousands of short processes, so these count: collecting garbage among the thousands of modules that
    torch and transformers import takes half a second, and so does taking them down one by one at the end.
    """
    gc.set_threshold(200_000)
    code: str | int | None = 0
    try:
        app()
    except SystemExit as end:
        code = end.code
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 1 if code else 0)


@app.command()
def meanings(kind: str, output: Output, options: Json = "{}") -> None:
    """Make the meanings of a generated task, which every language then says."""
    from xlgrid.data.generated import make_meanings

    make_meanings(kind, json.loads(options), output)


@app.command()
def data(kind: str, language: str, meanings: File, output: Output, options: Json = "{}") -> None:
    """Say the meanings of a generated task in a language or pair."""
    from xlgrid.data.generated import make_data

    make_data(kind, json.loads(options), language, meanings, output)


@app.command()
def fetch_data(
    kind: str,
    language: str,
    split: str,
    source: Json,
    lock: File,
    output: Output,
    columns: Columns = "{}",
    unlabelled: Annotated[bool, typer.Option("--unlabelled", help="without labels, which a run then gives")] = False,
) -> None:
    """Fetch one split (train, dev or test) of a task's data in a language from the Hub or from files."""
    from xlgrid.data.fetch import fetch_data

    fetch_data(kind, json.loads(source), language, split, output, lock, json.loads(columns), unlabelled)


@app.command()
def label_data(
    kind: str,
    language: str,
    data: Annotated[Path, typer.Argument(help="rows without labels")],
    run: RunFolder,
    encoder: EncoderFolder,
    vocabulary: VocabularyFolder,
    max_length: Annotated[int, typer.Option(help="tokens")],
    output: Output,
    columns: Columns = "{}",
) -> None:
    """Give data of a task the labels that the model of a run predicts."""
    from xlgrid.evaluation.labels import label_data

    folders = (folder_of(run), folder_of(encoder), folder_of(vocabulary))
    label_data(*folders, data, language, kind, max_length, output, json.loads(columns))


@app.command()
def text(
    language: str,
    output: Output,
    settings: Json = "{}",
    lock: Annotated[Path | None, typer.Option(help="the lock file, for text from the Hub")] = None,
) -> None:
    """Make or fetch text in a language to pre-train on; one id means the same in every language of a world."""
    from xlgrid.data.text import TextSettings, make_text

    make_text(language, output, TextSettings.model_validate_json(settings), lock)


@app.command()
def vocabulary(texts: list[Path], spec: Json, output: Output) -> None:
    """Train a vocabulary on texts."""
    from xlgrid.data.vocabulary import VocabularyEntry, make_vocabulary

    make_vocabulary(VocabularyEntry.model_validate_json(spec), texts, output)


@app.command()
def fetch_vocabulary(hub: str, lock: File, output: Output, revision: Annotated[str, typer.Option()] = "main") -> None:
    """Fetch a vocabulary from the Hub at the commit that the lock file fixes."""
    from xlgrid.data.encoders import fetch_vocabulary

    fetch_vocabulary(hub, revision, output, lock)


@app.command()
def copy_vocabulary(path: Path, output: Output) -> None:
    """Take over a vocabulary from a folder with tokenizer.json."""
    from xlgrid.data.encoders import copy_vocabulary

    copy_vocabulary(path, output)


@app.command()
def pretrain(
    recipe: Json,
    vocabulary: VocabularyFolder,
    train: Annotated[list[Path], typer.Option(help="tokens of the text of a language or pair")],
    dev: Annotated[list[Path], typer.Option(help="likewise, for evaluations")],
    output: Output,
    pace: Json = "{}",
    begin: Annotated[Path | None, typer.Option(help="the encoder with whose weights it begins")] = None,
    processes: Annotated[int, typer.Option(min=1, help="that share the work, each with a GPU if there is one")] = 1,
) -> None:
    """Pre-train an encoder; repeat --train and --dev for each part of the source. A stopped training goes on from where it was."""
    from xlgrid.training.processes import is_shared, launch

    if processes > 1 and not is_shared():
        raise typer.Exit(launch([sys.executable, "-P", "-m", "xlgrid.cli", *sys.argv[1:]], processes))
    from xlgrid.training.pretraining import pretrain
    from xlgrid.training.recipe import Recipe

    pretrain(Recipe.parse(recipe, pace), folder_of(vocabulary), train, dev, output, begin and folder_of(begin))


@app.command()
def snapshot_encoder(encoder: EncoderFolder, step: Annotated[int, typer.Option()], output: Output) -> None:
    """Make an encoder of the weights that a pre-training has kept after a step."""
    from xlgrid.training.pretraining import take_snapshot

    take_snapshot(folder_of(encoder), step, output)


@app.command()
def fetch_encoder(
    hub: str,
    vocabulary: VocabularyFolder,
    lock: File,
    output: Output,
    revision: Annotated[str, typer.Option()] = "main",
    modules: Json = "{}",
    layers: Layers = None,
) -> None:
    """Fetch an encoder from the Hub at the commit that the lock file fixes."""
    from xlgrid.data.encoders import fetch_encoder

    fetch_encoder(hub, revision, folder_of(vocabulary), output, lock, json.loads(modules), layers)


@app.command()
def copy_encoder(
    path: Path, vocabulary: VocabularyFolder, output: Output, modules: Json = "{}", layers: Layers = None
) -> None:
    """Take over an encoder from a folder in the ordinary Hugging Face layout."""
    from xlgrid.data.encoders import copy_encoder

    copy_encoder(path, folder_of(vocabulary), output, json.loads(modules), layers)


@app.command()
def tokenize(
    kind: str,
    data: Annotated[list[Path], typer.Argument(help="data of a split, and of companions; or a text, or a pair's")],
    vocabulary: VocabularyFolder,
    max_length: Annotated[int, typer.Option(help="tokens")],
    output: Output,
    one_separator: OneSeparator = False,
    stride: Annotated[int, typer.Option(help="tokens that two windows of a long example share")] = 128,
    columns: Columns = "{}",
    split: Annotated[
        Literal["train", "dev", "test"] | None, typer.Option(help="the rows of a text to take", show_default="all")
    ] = None,
    documents: Annotated[Literal["cut", "split", "pack"], typer.Option(help="what becomes of rows of a text")] = "cut",
    dev_rows: Annotated[int, typer.Option(help="most rows for dev, every 50th, and for test, between")] = 10_000,
    lines: Annotated[Literal["joined", "segments"], typer.Option(help="what a line break in a row is")] = "joined",
    options: Json = "{}",
) -> None:
    """Turn a file of data, a text, or the parallel texts of a pair into the tokens of a vocabulary."""
    from xlgrid.data.tokenize import tokenize

    described, folder, of_text = json.loads(columns), folder_of(vocabulary), (split, documents, dev_rows, lines)
    tokenize(data, folder, kind, max_length, output, one_separator, stride, described, *of_text, json.loads(options))


@app.command()
def train(
    recipe: Json,
    encoder: EncoderFolder,
    train: Annotated[list[Path], typer.Option(help="tokens of a part of the source")],
    dev: Annotated[list[Path], typer.Option(help="likewise, or of one of the recipe's `dev_targets`, for selection")],
    output: Output,
    pace: Json = "{}",
    start: Annotated[Path | None, typer.Option(help="the run on text that the recipe's `start` names")] = None,
    first: Annotated[Path | None, typer.Option(help="the run of the task that the recipe's `first` names")] = None,
    vocabulary: Annotated[
        Path | None, typer.Option(help="that of the tokens, for text in another vocabulary than the encoder's")
    ] = None,
) -> None:
    """Train one run; repeat --train and --dev for each part of a mix. An interrupted run goes on from where it was."""
    from xlgrid.training.loop import train as train_run
    from xlgrid.training.recipe import Recipe

    parsed = Recipe.parse(recipe, pace)
    begun = (path and folder_of(path) for path in (start, first, vocabulary))
    train_run(parsed, folder_of(encoder), train, dev, output, *begun)


@app.command()
def export_adapter(
    run: Annotated[Path, typer.Argument(help="the folder of a run whose method has adapters")],
    encoder: File,
    output: Output,
    safetensors: Annotated[bool, typer.Option("--safetensors", help="instead of pytorch_adapter.bin")] = False,
) -> None:
    """Write the language or task adapters that a run has trained to a folder, as the `adapters` library saves them."""
    from xlgrid.training.adapters import export_adapter

    export_adapter(run, encoder, output, safetensors)
    print(f"{output}: written, for `model.load_adapter` of the adapters library")


@app.command()
def import_adapter(
    place: Annotated[str, typer.Argument(help="a folder; with --lock, owner/name on the Hub")],
    recipe: Json,
    encoder: File,
    output: Output,
    revision: Annotated[str, typer.Option()] = "main",
    lock: Annotated[Path | None, typer.Option(help="the lock file, for weights from the Hub")] = None,
) -> None:
    """Take over an adapter in the layout of AdapterHub as a run on text."""
    from xlgrid.training.adapters import import_adapter
    from xlgrid.training.recipe import Recipe

    import_adapter(Recipe.model_validate_json(recipe), encoder, place, output, revision, lock)


@app.command()
def evaluate(
    encoder: EncoderFolder,
    tokens: File,
    target: Annotated[str, typer.Option(help="a language or pair; as of a step of its run on text: qu@1000")],
    output: Annotated[Path, typer.Option(help="the file to write; without a run, its path says what the cell is")],
    run: Annotated[Path | None, typer.Argument(help="a run, if any: its folder or delta.safetensors")] = None,
    text_run: Annotated[
        Path | None, typer.Argument(help="the target's run on text, if there is one: its folder or delta.safetensors")
    ] = None,
    study: OfStudy = None,
) -> None:
    """Make a cell: evaluate a run, or an encoder without training, on the tokens of a target."""
    from xlgrid.evaluation.cell import evaluate, evaluate_bare
    from xlgrid.results.identity import bare_cell

    if run:
        evaluate(folder_of(run), folder_of(encoder), tokens, target, output, text_run and folder_of(text_run), study)
    else:
        evaluate_bare(bare_cell(output, target)._asdict(), folder_of(encoder), tokens, output)


@app.command()
def attention(
    run: RunFolder,
    encoder: EncoderFolder,
    vocabulary: VocabularyFolder,
    tokens: Annotated[list[str], typer.Option(metavar="TARGET=FILE", help="tokens of a target; give it twice")],
    output: Output,
    text_run: Annotated[
        list[str] | None, typer.Option(metavar="TARGET=RUN", help="the target's run on text, if there is one")
    ] = None,
    study: OfStudy = None,
) -> None:
    """Compare the attention of a run on two targets."""
    from xlgrid.evaluation.attention import compare

    files, runs = (by_target(option, values) for option, values in (("tokens", tokens), ("text-run", text_run or [])))
    if len(files) != 2:
        raise ValueError(f"attention is compared on two targets, got {len(files)}: give --tokens twice")
    folders = {target: folder_of(path) for target, path in runs.items()}
    compare(folder_of(run), folder_of(encoder), folder_of(vocabulary), files, output, folders, study)


@app.command()
def exhibit(
    study: StudyName,
    name: str,
    output: OutputFolder,
    published: Annotated[bool, typer.Option("--published", help="compare it with published numbers instead")] = False,
) -> None:
    """Render a table or figure from whatever cells exist."""
    from xlgrid.plan.load import load_plan

    plan = load_plan(study)
    plan.study.exhibit(name).render(name, plan, output, compare=published)


@app.command()
def claims(study: StudyName, output: OutputFolder) -> None:
    """Judge a study's claims from whatever cells exist: effect, interval, p, verdict."""
    from xlgrid.exhibits.claims import render
    from xlgrid.plan.load import load_plan

    plan = load_plan(study)
    render(plan.study, plan.cells, output)


@app.command()
def report(
    study: StudyName,
    notebook: Annotated[Path, typer.Argument(help="the notebook without outputs")],
    output: Annotated[Path, typer.Option(help="the notebook with its outputs, to write")],
    summary: Annotated[Path, typer.Option(help="the table of scores, to write")],
) -> None:
    """Run the notebook of the report, and write the scores of a study, from whatever results exist."""
    from xlgrid.report.notebook import write_report

    write_report(study, notebook, output, summary)


@app.command("report-html")
def report_html(
    notebook: Annotated[Path, typer.Argument(help="the notebook with its outputs")], output: Output
) -> None:
    """Make a page of the notebook of a report."""
    from xlgrid.report.notebook import write_page

    write_page(notebook, output)


@app.command()
def status(
    study: StudyName,
    ledger: Ledger = None,
    watch: Annotated[bool, typer.Option("--watch", help="show it anew until all is done or Ctrl-C is pressed")] = False,
    every: Annotated[float, typer.Option(min=0.1, help="seconds between two looks of --watch")] = 5,
) -> None:
    """Show a study as source x target matrices: done, running, queued, failed; the time left; why failures failed.

    What runs and what is queued is known of jobs that the submitit executor runs.
    """
    from xlgrid.plan.load import load_plan
    from xlgrid.report import status
    from xlgrid.report.ledger import FOLDER
    from xlgrid.report.overview import look

    plan = load_plan(study)
    if watch:
        status.watch(plan, ledger or FOLDER, every)
    else:
        status.show(look(plan, ledger or FOLDER))


@app.command()
def cost(
    study: StudyName,
    examples: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TASK=TRAIN,DEV,TEST",
            help="how many, where the study does not say; in one language TASK:LANGUAGE=...",
        ),
    ] = None,
    tokens: Annotated[
        list[str] | None, typer.Option(metavar="TASK=NUMBER", help="tokens per example; a kind of task goes too")
    ] = None,
    tflops: Annotated[float, typer.Option(help="TFLOP/s that a GPU sustains in training: 25 % of an A100's")] = 78,
    evaluation_tflops: Annotated[
        float | None, typer.Option(help="the same of evaluation", show_default="as in training")
    ] = None,
    step_ms: Annotated[float, typer.Option(help="milliseconds of a step beside that, whatever its size")] = 25,
    measured: Annotated[
        Path | None, typer.Option(metavar="RUN.json", help="a run of the study that is done, instead of these three")
    ] = None,
    csv: Annotated[Path | None, typer.Option(help="write the table of exhibits there, too")] = None,
    gpus: Annotated[int, typer.Option(min=1, help="that share a pre-training, for its days")] = 1,
) -> None:
    """Estimate what a study takes: runs, cells, steps, GPU-hours and disk per exhibit; time, text and disk per pre-training;
    parameters per method; rows and pieces per word of local data."""
    from xlgrid.plan.load import load_plan
    from xlgrid.report import cost

    assumed = cost.assumptions(examples or [], tokens or [], tflops, evaluation_tflops, step_ms)
    cost.show(load_plan(study), assumed, measured, csv, gpus)


@app.command()
def partial(
    study: StudyName,
    output: OutputFolder,
    log: Annotated[Path | None, typer.Option(help="Snakemake's log of the run")] = None,
    ledger: Ledger = None,
) -> None:
    """After a failure: list the failed jobs; render every exhibit and judge the claims from whatever cells exist."""
    from xlgrid.plan.load import load_plan
    from xlgrid.report import status
    from xlgrid.report.ledger import FOLDER

    status.partial(load_plan(study), output, ledger or FOLDER, log)


if __name__ == "__main__":
    main()
