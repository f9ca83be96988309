"""Labels that a trained model gives to data that have none: the training data of other runs (Luo et al. 2021, section 4.1)."""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from xlgrid.data import batches
from xlgrid.data.fetch import checked, write_rows
from xlgrid.data.formats import read_table
from xlgrid.data.tokenize import tokenize
from xlgrid.evaluation import trained
from xlgrid.models import prediction
from xlgrid.tasks import Columns, task


def label_data(
    run: str | Path,
    encoder: str | Path,
    vocabulary: str | Path,
    data: str | Path,
    language: str,
    kind: str,
    max_length: int,
    out: str | Path,
    columns: Columns | Mapping[str, Any] | None = None,
) -> None:
    """Write data of a task with the labels that the model of a run predicts: a parquet file with the task's columns.

    Rows keep their order. The metadata of the file have the run (`labelled_by`) and the digest of its recipe (`digest`).

    Args:
        run: the folder of the run.
        encoder: the folder of its encoder.
        vocabulary: the folder of the encoder's vocabulary.
        data: the file of rows without labels.
        language: the language of the rows.
        kind: the name of the task that the labelled data are for, or of its head.
        max_length: the most tokens of an input; longer sentences are labelled window by window.
        out: the file to write.
        columns: the columns of a task that is described by its head.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: a file is damaged, the task is not one that a run can label, or the run has other labels or does not fit the
            encoder.
    """
    import torch

    described, finished = task(kind, columns), trained.read(run)
    recipe, labels = finished.recipe, finished.record["labels"]
    if not described.head.can_label:
        raise ValueError(f"runs label data of tasks with a label for each word, and {kind} is none: name another kind")
    if list(described.labels) != labels:
        raise ValueError(
            f"{run} was trained on the labels {', '.join(labels)}, but {kind} has {', '.join(described.labels)}: name a run with "
            "these labels"
        )
    with TemporaryDirectory() as folder:
        path = Path(folder, "tokens.arrow")
        tokenize([data], vocabulary, kind, max_length, path, columns=columns, unlabelled=True)
        tokens = batches.read(path, language)
        model = trained.model_of(finished, encoder, tokens)
        trained.stack(model, finished.method, tokens, recipe.task)
        arguments = trained.placed(model, recipe.training)
        # Some methods draw masks of attention in evaluation too.
        torch.manual_seed(recipe.seed)
        predictions = prediction.predictions_on(model, finished.method, tokens, *arguments)
        table = described.head.label(read_table(data), described, tokens, predictions)
    notes = {"labelled_by": str(run), "digest": finished.record["digest"]}
    write_rows(checked(table, described, str(data), notes), out)
