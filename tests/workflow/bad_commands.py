"""Commands that ask for what is not there, settings that are none, and results that are not those of the study."""

import json

from bad_inputs import CELL, ENCODER, SETTINGS, STUDY, Bad, file, nothing, several

# Commands of Snakemake, as far as the rules read them.
WORKFLOW = (
    Bad(
        "an unknown setting",
        "config.yaml or --config: unknown setting 'studdy', did you mean 'study'? (there are: study, hub_lock, gpus, page)",
        file(SETTINGS, "studdy: mine\n"),
        "snakemake",
    ),
    Bad(
        "a setting of another type",
        "config.yaml or --config: gpus: must be a whole number, got 'two'",
        file(SETTINGS, "gpus: two\n"),
        "snakemake",
    ),
    Bad(
        "a default study that is not there",
        "no study file studies/mime.yaml: unknown study 'mime', did you mean 'mine'? (there are: ",
        file(SETTINGS, "study: mime\n"),
        "snakemake",
    ),
    Bad(
        "a path of a study that is not there",
        "no study file away/mine.yaml: unknown study 'mine' (there are: ",
        file(SETTINGS, "study: away/mine.yaml\n"),
        "snakemake",
    ),
    Bad(
        "two studies of one name",
        "away/mine.yaml and studies/mine.yaml would both make results/mine/: rename one of them",
        several(file("away/mine.yaml", STUDY), file(SETTINGS, "study: away/mine.yaml\n")),
        "snakemake",
    ),
    Bad(
        "results of an unknown study",
        "no study file studies/mein.yaml: unknown study 'mein', did you mean 'mine'? (there are: ",
        nothing,
        "snakemake results/mein/report.html",
    ),
    Bad(
        "an unknown exhibit",
        "nothing makes results/mine/exhibits/scorse.md. The nearest file is results/mine/exhibits/scores.md. Study mine makes, ",
        nothing,
        "snakemake results/mine/exhibits/scorse.md",
    ),
    Bad(
        "another folder than results",
        "nothing makes result/mine/report.html: unknown folder 'result', did you mean 'results'? (there are: results)",
        nothing,
        "snakemake result/mine/report.html",
    ),
    Bad(
        "a cell with an unknown method",
        "unknown method 'full-tf', did you mean 'full-ft'? (there are: full-ft, ",
        nothing,
        f"snakemake {CELL.replace('full-ft', 'full-tf')}",
    ),
    Bad(
        "a seed that no run has",
        "unknown seed '4' (there are: 1, 2, 3)",
        nothing,
        f"snakemake {CELL.replace('seed1', 'seed4')}",
    ),
    Bad(
        "a cell that no grid has",
        "each part exists, but no grid of study mine has this combination: see studies/mine.yaml; the nearest is results/mine/cells/",
        nothing,
        f"snakemake {CELL.replace('tiny', 'mini')}",
    ),
)
COMMANDS = (
    Bad(
        "the cost of an unknown study",
        "no study file studies/mime.yaml: unknown study 'mime', did you mean 'mine'? (there are: ",
        nothing,
        "cost mime",
    ),
    Bad(
        "the status of an unknown study",
        "no study file studies/mime.yaml: unknown study 'mime', did you mean 'mine'? (there are: ",
        nothing,
        "status mime",
    ),
    Bad(
        "an unknown exhibit of a study",
        "study mine: unknown exhibit 'scorse', did you mean 'scores'? (there are: scores)",
        nothing,
        "exhibit mine scorse --output out",
    ),
    Bad(
        "a measured run that is none",
        "studies/mine.yaml is not a valid run.json (... give the run.json of a finished run",
        nothing,
        "cost mine --measured studies/mine.yaml",
    ),
    Bad(
        "a run that is not there",
        "results/mine/runs/none/run.json does not exist: check the path, or rerun training",
        nothing,
        f"evaluate results/mine/runs/none --encoder {ENCODER} --tokens x --output {CELL}",
    ),
    Bad(
        "a cell cut short",
        f"{CELL} is truncated or is not a cell (... delete it and run the study again",
        file(CELL, "{"),
        "exhibit mine scores --output out",
    ),
    Bad(
        "a cell of another study",
        f"{CELL} is another cell: ... delete it and run the study again",
        file(
            CELL,
            json.dumps(
                dict.fromkeys(
                    (
                        "head",
                        "labels",
                        "scores",
                        "outcomes",
                        "metric",
                        "n",
                        "encoder",
                        "method",
                        "source",
                        "target",
                        "task",
                        "study",
                        "seed",
                    ),
                    "other",
                )
            ),
        ),
        "exhibit mine scores --output out",
    ),
    Bad("settings that are no YAML", "config.yaml:1: not valid YAML: ", file(SETTINGS, "study: [")),
    Bad(
        "settings that are a list",
        "config.yaml has settings, each with a value (study: demo), got \"['study']\": correct the file",
        file(SETTINGS, "- study\n"),
    ),
    Bad(
        "a folder that is no project",
        "no config.yaml in ... which names the lock file: run this in the folder of a project",
        file(SETTINGS, None),
    ),
    Bad(
        "a lock file that is none",
        "hub.lock.yaml, model/a/b@main: 'abc' is not a commit of 40 hexadecimal digits; delete the line",
        file("hub.lock.yaml", "model/a/b@main: abc\n"),
    ),
    Bad(
        "a name that is taken",
        "studies/mine.yaml exists already: choose another name, or move it away; nothing was written",
        nothing,
        "new study mine",
    ),
    Bad(
        "a name that is none",
        "'a/b' cannot be a name: it becomes part of a path; use letters, digits and . _ + -",
        nothing,
        "new study a/b",
    ),
    Bad(
        "a language without a code",
        "unknown language 'zzz' ... `new_languages` of a study declares others",
        nothing,
        "new language zzz",
    ),
)
