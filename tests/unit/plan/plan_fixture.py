"""Small studies, and their plans."""

from xlgrid.study.schema import Study


def small(**grid: object) -> Study:
    axes = {
        "task": ["ner"],
        "encoder": ["mini"],
        "method": ["full-ft", "bitfit"],
        "source": ["en", "en+en-fr"],
        "target": ["mono", "en-X", "X-en"],
        "seed": [1, 2],
    }
    return Study(
        name="small",
        title="small",
        languages=["en", "fr", "de"],
        encoders={"mini": {"mini": {"languages": ["en"]}}},
        tasks={"ner": {"kind": "ruletaker"}},
        methods={"full-ft": {}, "bitfit": {}},
        grids={"g": axes | grid},
    )


def begun(**changes: object) -> Study:
    """Runs that begin with text, of the source, of the target and of both, on a task that begins with another."""
    return Study(
        name="begun",
        title="begun",
        languages=["en", "fr", "de"],
        encoders={"mini": {"mini": {"languages": ["en"]}}},
        tasks={"siqa": {"kind": "ruletaker"}, "copa": {"kind": "ruletaker", "start": "siqa"}, "mlm": {"kind": "mlm"}},
        methods={
            "mlm": {"base": "full-ft"},
            "mlm-src": {"base": "full-ft", "start": {"task": "mlm", "method": "mlm", "at": "source"}},
            "mlm-trg": {"base": "full-ft", "start": {"task": "mlm", "method": "mlm", "at": "target"}},
            "both": {"base": "qcross", "start": {"task": "mlm", "method": "mlm"}},
        },
        training=[
            {"set": {"steps": 30}},
            {"when": {"source": "en"}, "set": {"lr": 1.0}},
            {"when": {"task": "mlm"}, "set": {"snapshots": [10, 20]}},
        ],
        grids={
            "g": {
                "task": ["copa"],
                "encoder": ["mini"],
                "method": ["mlm-src", "mlm-trg", "both"],
                "source": ["en"],
                "target": ["en", "fr"],
                "seed": [1],
            },
            **changes,
        },
    )


EARLY = {
    "task": ["siqa"],
    "encoder": ["mini"],
    "method": ["both"],
    "source": ["en"],
    "target": ["en", "fr"],
    "seed": [1],
    "snapshots": [10, 20],
}
