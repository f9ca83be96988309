"""Label data with a trained model, as training data of other runs (Luo et al. 2021, section 4.1)."""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from xlgrid.data import batches
from xlgrid.data.fetch import checked, read_data, write_rows
from xlgrid.data.formats import read_table
from xlgrid.data.sources import origin_of
from xlgrid.data.tokenize import tokenize
from xlgrid.evaluation import trained
from xlgrid.heads.token import sentences
from xlgrid.models import prediction
from xlgrid.papers.luo2021.labelled import labels_words, without_answers
from xlgrid.tasks import Columns, task


def fetch_unlabelled(
    kind: str,
    source: Mapping[str, Any],
    language: str,
    out: str | Path,
    lock: str | Path,
    columns: Columns | Mapping[str, Any] | None = None,
) -> None:
    """Write the training set of a task in a language as a parquet file, without any labels.

    Args:
        source: the origin of the rows, as its fields (`xlgrid.data.sources.origin_of`).
        lock: the lock file, see `xlgrid.data.lock`.
        columns: the columns of a task that is described by its head.

    Raises:
        FileNotFoundError: a local file does not exist.
        ValueError: `xlgrid.data.fetch.read_data` raises it.
    """
    write_rows(read_data(origin_of(source), without_answers(task(kind, columns)), language, "train", lock), out)


def label_data(
    run: str | Path,
    encoder: str | Path,
    tokenizer: str | Path,
    data: str | Path,
    language: str,
    kind: str,
    max_length: int,
    out: str | Path,
    columns: Columns | Mapping[str, Any] | None = None,
) -> None:
    """Label data of a task with the predictions of a run's model, and write a parquet file with the task's columns.

    Rows keep their order. The metadata of the file have the run (`labelled_by`) and the digest of its recipe
    (`digest`).

    Args:
        run: the folder of the run.
        encoder: the folder of its encoder.
        tokenizer: the folder of the encoder's tokenizer.
        data: the file of rows without labels.
        language: the language of the rows.
        kind: the name of the task that the labelled data are for, or of its head.
        max_length: the maximum number of tokens of an input; longer sentences are labelled window by window.
        out: the file to write.
        columns: the columns of a task that is described by its head.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: a file is damaged, runs cannot label the task, or the run has other labels or does not fit the
            encoder.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq
    import torch

    described, finished = task(kind, columns), trained.read(run)
    recipe, labels = finished.recipe, finished.record["labels"]
    if not labels_words(described):
        raise ValueError(
            f"runs can label only data of tasks with a label for each word, and {kind} is not such a task: name "
            "another kind"
        )
    if list(described.labels) != labels:
        raise ValueError(
            f"{run} was trained on the labels {', '.join(labels)}, but {kind} has {', '.join(described.labels)}: name "
            "a run with these labels"
        )
    table = read_table(data)
    without_answers(described).check(table, str(data))
    # Predictions are read at the tokens that have labels, so each word gets a placeholder label.
    blank = pa.array([[0] * len(words) for words in table[described.inputs[0]].to_pylist()], pa.list_(pa.int64()))
    with TemporaryDirectory() as folder:
        rows, path = Path(folder, "rows.parquet"), Path(folder, "tokens.arrow")
        pq.write_table(table.append_column(described.target, blank), rows)
        tokenize([rows], tokenizer, kind, max_length, path, columns=columns)
        tokens = batches.read(path, language)
        model = trained.model_of(finished, encoder, tokens)
        trained.stack(model, finished.method, tokens, recipe.task)
        arguments = trained.placed(model, recipe.training)
        # Some methods also draw random attention masks in evaluation.
        torch.manual_seed(recipe.seed)
        predictions = prediction.predictions_on(model, finished.method, tokens, *arguments)
    predicted = pa.array([words.predicted for words in sentences(tokens, predictions)], pa.list_(pa.int64()))
    notes = {"labelled_by": str(run), "digest": finished.record["digest"]}
    write_rows(checked(table.append_column(described.target, predicted), described, str(data), notes), out)
