"""How many sentences a second an artificial language speaks: `python benchmarks/artificial.py [code ...]`."""

import sys
import time

from xlgrid.synthetic import world
from xlgrid.synthetic.artificial import artificial

N = 20_000


def main(codes: list[str]) -> None:
    start = time.perf_counter()
    facts = world.facts(N, seed=0)
    print(f"facts  {N / (time.perf_counter() - start):>10,.0f}/s")
    for code in codes:
        start = time.perf_counter()
        language = artificial(code)
        ready = time.perf_counter()
        for fact in facts:
            language.realise(fact)
        spoken = time.perf_counter()
        print(f"{code:<6} {N / (spoken - ready):>10,.0f} sentences/s, language made in {1000 * (ready - start):.1f} ms")


if __name__ == "__main__":
    main(sys.argv[1:] or ["qa1", "qb1", "qc1", "qd1"])
