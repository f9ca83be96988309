"""Reading a paper's numbers."""

import re
from pathlib import Path

import pytest

from xlgrid.results import published

HEAD = "exhibit,model,dataset,method,source,target,metric,value"


@pytest.fixture
def reference(tmp_path: Path) -> Path:
    """A folder of published numbers."""
    folder = tmp_path / "reference" / "paper"
    folder.mkdir(parents=True)
    return folder


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{HEAD}\nt1,m,d,a,en,fr,f1,60\nt1,m,d,a,en,de,f1,6o\n", "t1.csv:3: '6o' is not a number"),
        (f"{HEAD}\nt1,m,d,a,en,fr,f1,60\nt1,m,d,a,en,fr,f1,61\n", "t1.csv:3: a second number for d m a en fr f1"),
        ("exhibit,model,dataset,method,target,metric,value\n", "has no column source"),
    ],
)
def test_damaged_numbers_are_refused(reference: Path, text: str, message: str) -> None:
    (reference / "t1.csv").write_text(text)
    with pytest.raises(ValueError, match=re.escape(message)):
        published.read(reference / "t1.csv")


def test_languages_whose_codes_look_like_nothing_are_read(reference: Path) -> None:
    (reference / "t1.csv").write_text(f"{HEAD}\nt1,m,d,a,no,nan,f1,60\n")
    assert published.read(reference / "t1.csv").index.tolist() == [("d", "m", "a", "no", "nan", "f1")]
