"""Write random programs (tests/support/random_programs.py) into a folder, for the sweep to find unproved ones.

    python tools/fuzz/write_random_programs.py /tmp/programs 500 --size 3
    python -m depyf sweep /tmp/programs --kinds function

The tests run 300 of them and compare their effects; this is for examining many, the smallest first.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "support"))

from random_programs import program


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("count", type=int)
    parser.add_argument("--size", type=int, default=3, help="compound statements in each, about (3)")
    parser.add_argument("--first", type=int, default=0, metavar="SEED")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for seed in range(options.first, options.first + options.count):
        (options.folder / f"program_{seed:06}.py").write_text(program(seed, options.size))


if __name__ == "__main__":
    main()
