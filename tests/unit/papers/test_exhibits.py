"""A mistake in an exhibit of a paper is told with its line."""

import re
from pathlib import Path

import pytest
from study_fixture import CURVE, TEXT, write

from xlgrid.plan.load import load_study


@pytest.mark.parametrize(
    ("exhibit", "message"),
    [
        ("{kind: masks, title: t, methods: [bitfit]}", "unknown method with masks 'bitfit'"),
        ("{kind: masks, title: t, methods: []}", "at least 1 item"),
        ("{kind: attention, title: t, targets: [en, fr]}", "one context, got contexts in en and fr"),
        ("{kind: attention, title: t, targets: [en, en]}", "needs two targets, got 'en' twice"),
        ("{kind: attention, title: t, targets: [en, en-ft]}", "did you mean 'en-fr'"),
        ("{kind: attention, title: t, targets: [en, en-fr], select: {metric: x}}", "metric"),
        ("{kind: parameters, title: t, encoders: [minni], methods: [bitfit]}", "did you mean 'mini'"),
        ("{kind: parameters, title: t, encoders: [mini], methods: [bitfut]}", "did you mean 'bitfit'"),
        ("{kind: best, title: t, select: {task: rtt}}", "did you mean 'rt'"),
    ],
)
def test_a_mistake_is_told_with_its_line(tmp_path: Path, exhibit: str, message: str) -> None:
    with pytest.raises(ValueError, match=rf"s\.yaml:20: .*{re.escape(message)}"):
        load_study(write(tmp_path, TEXT.replace(CURVE, exhibit)))
