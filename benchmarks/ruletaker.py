"""Time to make a RuleTaker data set in every natural language, as the rules do: meanings once, then each language.

Run from the repository root: python benchmarks/ruletaker.py [--n 100000] [--depth 0] [--cores 2]
"""

import argparse
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from xlgrid.data.generated import make_data, make_meanings
from xlgrid.synthetic.natural import natural_codes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=100_000, help="examples (default: 100000)")
    parser.add_argument("--depth", type=int, default=0, help="maximum depth of proof (default: 0)")
    parser.add_argument("--cores", type=int, default=2, help="languages at a time (default: 2)")
    arguments = parser.parse_args()
    options = {"n": arguments.n, "max_depth": arguments.depth}
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(arguments.cores) as pool:
        meanings = Path(folder) / "meanings.parquet"
        start = time.perf_counter()
        make_meanings("ruletaker", options, meanings)
        middle = time.perf_counter()
        jobs = [
            pool.submit(make_data, "ruletaker", options, code, meanings, Path(folder) / code)
            for code in natural_codes()
        ]
        for job in jobs:
            job.result()
        end = time.perf_counter()
    print(f"{arguments.n:,} examples up to depth {arguments.depth}")
    print(f"meanings     {middle - start:6.1f} s")
    print(f"{len(jobs)} languages  {end - middle:6.1f} s on {arguments.cores} cores")
    print(f"together     {end - start:6.1f} s")


if __name__ == "__main__":
    main()
