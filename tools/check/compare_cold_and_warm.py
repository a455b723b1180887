"""Compare the dumps with cold caches of PyTorch, warm ones, and ones that were filled without depyf.

    python tools/check/compare_cold_and_warm.py [SCRIPT]

SCRIPT (default: examples/training.py) gets a folder as its argument and dumps into it. It runs in three processes with
one cache directory. Prints a table of the kinds of files, and the lines of ``missing_stages_*.txt`` for files that the
first run has and another lacks. The exit status is 1 if anything is missing without such a line.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Counter as CounterType
from typing import Dict, List

PRINTED = "graphs that passes print"

RUNS = ("cold", "warm", "filled unseen")

_NUMBERS = re.compile(r"^(?:__compiled_fn_\d+\.|(__transformed_code|full_code|eager_fallbacks|missing_stages)_.*)")


def kind(name: str) -> str:
    """Return the kind of a file: ``Joint_graph`` of ``__compiled_fn_1.Joint_graph.0.py``, ``full_code`` of
    ``full_code_for_f_0.py``."""
    match = _NUMBERS.match(name)
    if match is not None and match.group(1):
        return match.group(1)
    return re.sub(r"[._]?\d+\.py$", "", name[match.end() :] if match else name)


def dump_three_times(script: Path, folder: Path) -> Dict[str, Path]:
    """Run ``script`` cold, warm, and with caches without depyf's notes; return the dumps by run."""
    cache, dumps = folder / "cache", {}
    for run in RUNS:
        if run == "filled unseen":
            shutil.rmtree(cache / "depyf", ignore_errors=True)  # as if depyf had not been active
        dumps[run] = folder / run.replace(" ", "_")
        environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(cache), "PYTHONHASHSEED": "0"}
        environment["DEPYF_FILES"] = "all"  # a state that equals another one is counted, too
        subprocess.run([sys.executable, str(script), str(dumps[run])], check=True, env=environment)
    return dumps


def kinds(dump: Path) -> CounterType[str]:
    return Counter(kind(path.name) for path in dump.iterdir() if not path.name.startswith("."))


def reported_missing(dump: Path) -> List[str]:
    """Return the lines that list missing stages."""
    return [line for path in sorted(dump.glob("missing_stages_*.txt")) for line in path.read_text().splitlines()]


def reports_of(kind: str, lines: List[str]) -> List[str]:
    """Return the lines about files of this kind; names of graphs from passes are lower case, and may be unknown."""
    named = [line for line in lines if kind in line]
    return named or [line for line in lines if kind.islower() and kind != "kernel" and PRINTED in line]


def main(script: Path) -> int:
    with tempfile.TemporaryDirectory() as folder:
        dumps = dump_three_times(script, Path(folder))
        counts = {run: kinds(dump) for run, dump in dumps.items()}
        every = sorted(set().union(*counts.values()))
        width = max(map(len, every))
        print("".join([" " * width, *(f"{run:>15}" for run in RUNS)]))
        for each in every:
            print("".join([f"{each:<{width}}", *(f"{counts[run][each]:>15}" for run in RUNS)]))
        unreported = []
        for run in RUNS[1:]:
            lines = reported_missing(dumps[run])
            for each in sorted(counts[RUNS[0]] - counts[run]):
                found = reports_of(each, lines)
                print(
                    f"\n{run}: {each} is missing{': ' if found else ', and no line gives the reason'}{' '.join(found)}"
                )
                unreported += [] if found else [each]
    print("\nEverything missing is reported." if not unreported else "\nSome missing files are not reported.")
    return 1 if unreported else 0


if __name__ == "__main__":
    default = Path(__file__).resolve().parents[2] / "examples" / "training.py"
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else default))
