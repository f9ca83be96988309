"""Whether two versions of xlgrid plan the same: the products of all studies, the inputs of each, and the settings with which it is made.

Run in the root of one checkout, and then in that of another:

    PYTHONPATH=src python benchmarks/plans.py --write /tmp/before.json
    PYTHONPATH=src python benchmarks/plans.py --compare /tmp/before.json

The comparison prints, for each study and kind of product, how many products are new, gone, have other inputs, or other settings, with
an example. The order of keys in settings does not count. The exit code is 1 if anything differs.
"""

import argparse
import hashlib
import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from xlgrid.base.papers import shipped_studies
from xlgrid.plan.load import load_plan

# Product -> the digests of its inputs and of its settings.
Planned = dict[str, list[str]]


def in_order(value: Any) -> Any:
    """A setting with the keys of the JSON in it sorted."""
    if isinstance(value, str) and value.startswith("{"):
        return json.dumps(json.loads(value), sort_keys=True)
    return value


def digest(value: object) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()[:12]


def planned(study: Path) -> Planned:
    plan = load_plan(str(study))
    return {
        repr(product): [
            digest(product.inputs(plan)),
            digest({key: in_order(value) for key, value in (product.settings(plan.study) or {}).items()}),
        ]
        for product in plan.products
    }


def differences(before: Planned, after: Planned) -> dict[tuple[str, str], list[str]]:
    """(kind of product, what differs) -> the products."""
    found = defaultdict(list)
    for product in dict.fromkeys([*before, *after]):
        old, new = before.get(product), after.get(product)
        if old is None or new is None:
            what = ["new" if old is None else "gone"]
        else:
            what = [name for name, a, b in zip(("inputs", "settings"), old, new, strict=True) if a != b]
        for each in what:
            found[product.partition("(")[0], each].append(product)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--write", type=Path, help="the file to write")
    group.add_argument("--compare", type=Path, help="a file that `--write` has written")
    parser.add_argument("--study", nargs="*", help="names of studies (default: all)")
    arguments = parser.parse_args()
    paths = sorted(shipped_studies(), key=lambda path: path.stem)
    after = {path.stem: planned(path) for path in paths if not arguments.study or path.stem in arguments.study}
    if arguments.write:
        arguments.write.write_text(json.dumps(after))
        return
    before: dict[str, Planned] = json.loads(arguments.compare.read_text())
    is_same = True
    for study in after:
        found = differences(before.get(study, {}), after[study])
        is_same = is_same and not found
        print(f"{study}: {len(after[study]):,} products{'' if found else ', the same'}")
        for (kind, what), products in found.items():
            print(
                f"  {len(products):,} {kind} with other {what}"
                if what in ("inputs", "settings")
                else f"  {len(products):,} {kind} {what}"
            )
            print(f"    such as {products[0]}")
    sys.exit(not is_same)


if __name__ == "__main__":
    main()
