"""Speed of the RuleTaker generator: examples per second at each maximum depth, on one core.

Run from the repository root: python benchmarks/theories.py [--n 20000]
"""

import argparse
import time

from xlgrid.synthetic.sizes import MAX_DEPTH
from xlgrid.synthetic.theories import Options, examples


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=20_000, help="examples per maximum depth (default: 20000)")
    parser.add_argument("--questions", type=int, default=4, help="questions per theory (default: 4)")
    arguments = parser.parse_args()

    print("max depth  examples/s  seconds per 100,000")
    for max_depth in range(MAX_DEPTH + 1):
        options = Options(max_depth=max_depth, seed=1, questions_per_theory=arguments.questions)
        start = time.perf_counter()
        for _ in examples(arguments.n, options):
            pass
        rate = arguments.n / (time.perf_counter() - start)
        print(f"{max_depth:9}  {rate:10,.0f}  {100_000 / rate:19.1f}")


if __name__ == "__main__":
    main()
