"""Check that ``depyf.compare`` finds planted numerical bugs, and reports nothing on healthy models.

    python tools/check/check_compare.py [NAME ...]

The eleven planted bugs and ten healthy models are those of tests/programs/planted_numerics.py. A bug is found when the
operation, its line and the stage are right.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import List

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "programs")]

import planted_numerics  # noqa: E402
import torch  # noqa: E402
from planted_numerics import HEALTHY, PLANTED, Planted  # noqa: E402

from depyf.answers.compared import Compared  # noqa: E402
from depyf.dynamo.questions.compare.question import compare  # noqa: E402


def faults(planted: Planted, answer: Compared) -> List[str]:
    """Return what is wrong in the result."""
    lines = Path(planted_numerics.__file__).read_text().splitlines()
    culprit, found = answer.culprit, []
    if answer.stage != planted.stage:
        found.append(f"stage {answer.stage}")
    if culprit is None:
        return [*found, "no operation"]
    if planted.operation not in culprit.operation:
        found.append(f"operation {culprit.operation}")
    if culprit.place is None or "# wrong" not in lines[culprit.place[1] - 1]:
        found.append(f"line {culprit.place}")
    if culprit.backward != planted.backward:
        found.append(f"backward {culprit.backward}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="parts of the names of some")
    parser.add_argument("-v", action="store_true", dest="verbose", help="print the answers")
    arguments = parser.parse_args()

    def wanted(name: str) -> bool:
        return not arguments.names or any(part in name for part in arguments.names)

    missed, counts = 0, [0, 0]
    for name, planted in PLANTED.items():
        if not wanted(name):
            continue
        torch.manual_seed(0)
        start = time.perf_counter()
        with planted.install() as backend:
            answer = compare(planted.function, *planted.arguments(), backend=backend)
        wrong = faults(planted, answer)
        missed += bool(wrong)
        counts[0] += 1
        culprit = answer.culprit
        words = "; ".join(wrong) or f"{culprit.operation if culprit else ''}; {culprit.step if culprit else ''}"
        print(f"{name:38} {'MISSED' if wrong else 'found':7} {time.perf_counter() - start:5.1f} s  {words}", flush=True)
        if arguments.verbose:
            print(answer)
    alarms = 0
    for name, make in HEALTHY.items():
        if not wanted(name):
            continue
        start = time.perf_counter()
        function, inputs = make()
        answer = compare(function, *inputs)
        alarms += not answer.same
        counts[1] += 1
        words = f"{len(answer.stages[0].values)} values" if answer.same else f"begins with {answer.stage}"
        print(
            f"{name:38} {'quiet' if answer.same else 'ALARM':7} {time.perf_counter() - start:5.1f} s  {words}",
            flush=True,
        )
        if arguments.verbose or not answer.same:
            print(answer)
    print(f"{counts[0] - missed} of {counts[0]} planted bugs found; {alarms} alarms on {counts[1]} healthy models")
    return 1 if missed or alarms else 0


if __name__ == "__main__":
    sys.exit(main())
