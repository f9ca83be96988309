"""Time and memory of exact search and mining: `python benchmarks/retrieval.py [--search 1000 --mine 100000]`.

Two pools of random vectors, in which row i of one pool is row i of the other with noise. Each query retrieves its nearest vector by
the cosine and by the ratio margin, as on Tatoeba, and pairs are mined from both pools by the ratio margin, as on BUCC. Each part
runs in a process of its own, whose peak of memory beside libraries and vectors should not depend on the number of pairs of vectors.
"""

import argparse
import json
import os
import subprocess
import sys
import time

import numpy as np

PARTS = ("search by cosine", "search by ratio", "mining")


def pools(rows: int, dimensions: int) -> tuple[np.ndarray, np.ndarray]:
    """Two pools of vectors, [rows, dimensions] each, of which row i belongs to row i."""
    rng = np.random.default_rng(rows)
    first = rng.standard_normal((rows, dimensions), np.float32)
    second = rng.standard_normal((rows, dimensions), np.float32)
    second += first
    return first, second


def held() -> float:
    """MB that the process has held at most."""
    with open("/proc/self/status") as file:
        return int(file.read().partition("VmHWM:")[2].split()[0]) / 1024


def part(name: str, rows: int, dimensions: int, block: int) -> None:
    """Do one part, and print what it took as JSON."""
    from xlgrid.heads.embed import search

    # Libraries and threads are loaded.
    search.mine(*pools(16, dimensions), "ratio", 4)
    first, second = pools(rows, dimensions)
    before, start = held(), time.perf_counter()
    if name == "mining":
        pairs = search.mine(first, second, "ratio", 4, block)
        right = int((pairs.first == pairs.second).sum())
    else:
        retrieved = search.search(second, first, "cosine" if name.endswith("cosine") else "ratio", 4, block)
        right = int((retrieved == np.arange(rows)).sum())
    print(json.dumps({"seconds": time.perf_counter() - start, "megabytes": held() - before, "right": right / rows}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--search", type=int, default=1000, help="vectors of each pool in search (default: 1000)")
    parser.add_argument("--mine", type=int, default=100_000, help="vectors of each pool in mining (default: 100000)")
    parser.add_argument("--dimensions", type=int, default=1024, help="of a vector (default: 1024, as XLM-R Large's)")
    parser.add_argument("--block", type=int, default=2**24, help="cosines in memory at a time (default: 2**24)")
    parser.add_argument("--part", choices=PARTS, help="do this part alone, in this process")
    arguments = parser.parse_args()
    sizes = {name: arguments.mine if name == "mining" else arguments.search for name in PARTS}
    if arguments.part:
        part(arguments.part, sizes[arguments.part], arguments.dimensions, arguments.block)
        return
    print(f"{'part':16}  {'vectors':>9}  {'seconds':>8}  {'GFLOP/s':>8}  {'MB beside vectors':>17}  right")
    for name, rows in sizes.items():
        process = subprocess.run(
            [sys.executable, __file__, "--part", name, *sys.argv[1:]],
            stdout=subprocess.PIPE,
            check=True,
            env=os.environ,
        )
        took = json.loads(process.stdout)
        products = 2 * rows**2 * arguments.dimensions
        print(
            f"{name:16}  {rows:9,}  {took['seconds']:8.2f}  {products / took['seconds'] / 1e9:8.1f}  {took['megabytes']:17,.0f}  "
            f"{took['right']:.1%}",
            flush=True,
        )


if __name__ == "__main__":
    main()
