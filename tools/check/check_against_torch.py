"""Compare the graph breaks and recompilations in the manifest with PyTorch's logs of the same run.

    python tools/check/check_against_torch.py [--backend BACKEND] [--tlparse PATH] [EXAMPLE ...]

Runs examples (by default the three that issue 5 names) under ``prepare_debug`` with
``TORCH_LOGS=graph_breaks,recompiles``, and prints the location of each break and each recompilation on both sides. With
the path of the program tlparse the trace of the same run is passed to it, and its counts are printed. The exit status
is 1 if one side has an event that the other lacks, or has at another line.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Counter as CounterType
from typing import Dict, Iterator, List, Tuple

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "support")]

from torch_words import Words, words_in  # noqa: E402

from depyf.report.model.manifest import from_json  # noqa: E402
from depyf.report.model.run import Run  # noqa: E402

EXAMPLES = ("bert", "breaks_and_recompiles", "mixture_of_experts")

Row = Tuple[str, str, str]
"""The kind of event, its compile id, and the location."""


def run_example(example: str, backend: str, folder: Path) -> Tuple[Run, Words, Path]:
    """Run it in a separate process; return its manifest, PyTorch's logs and the folder with PyTorch's trace."""
    log, trace = folder / "torch.log", folder / "trace"
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "src"),
        "OMP_NUM_THREADS": "1",
        "TORCH_LOGS": "graph_breaks,recompiles",
        "TORCH_LOGS_OUT": str(log),
        "TORCH_TRACE": str(trace),
    }
    script = ROOT / "tests" / "programs" / "run_example.py"
    command = [sys.executable, str(script), example, backend, str(folder / "dump")]
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    run = from_json((folder / "dump" / "manifest.json").read_text())
    return run, words_in(log.read_text() if log.exists() else ""), trace


def rows_of_manifest(run: Run) -> Iterator[Row]:
    """Yield the breaks, and each guard that caused a recompilation."""
    for each in run.breaks:
        place = each.place
        yield "break", str(each.compile_id), f"{_name(run.sources[place[0]].path)}:{place[1]}" if place else "?"
    for recompile in run.recompiles:
        function = run.functions[recompile.function]
        where = f"{function.name} ({_name(run.sources[function.source].path)}:{function.first_line})"
        yield "recompile", recompile.compile_id, where
        for failed in recompile.failed:
            yield "  guard", recompile.compile_id, f"{failed.entry}: {failed.text}"


def rows_of_torch(words: Words) -> Iterator[Row]:
    """Yield the same from PyTorch's logs."""
    for compile_id, path, line in words.breaks:
        yield "break", compile_id, f"{_name(path)}:{line}"
    for compile_id, function, path, line in words.recompiles:
        yield "recompile", compile_id, f"{function} ({_name(path)}:{line})"
        for reason_id, entry, guard in words.reasons:
            if reason_id == compile_id:
                yield "  guard", compile_id, f"{entry}: {guard}"


def _name(path: str) -> str:
    return os.path.basename(path)


def line_that_caused(run: Run, compile_id: str) -> str:
    """Return the line of the user whose guard failed, according to the manifest."""
    for recompile in run.recompiles:
        place = recompile.failed[0].place if recompile.compile_id == compile_id else None
        if place is not None:
            return f"  [line {_name(run.sources[place[0]].path)}:{place[1]}: {recompile.failed[0].words}]"
    return ""


def counted_by_tlparse(program: str, trace: Path) -> Dict[str, int]:
    """Return the number of graph breaks and recompilations that the reports of tlparse link to."""
    logs = [path for path in trace.glob("*.log") if path.stat().st_size]
    output = trace / "report"
    subprocess.run([program, "--no-browser", "-o", str(output), str(logs[0])], check=True, stdout=subprocess.DEVNULL)
    names: CounterType[str] = Counter()
    for path in output.rglob("*"):
        name = re.sub(r"_\d+(?=\.\w+$)", "", path.name)
        names[name] += path.is_file()
    return {
        "graph breaks": names["dynamo_graph_break_reason.txt"],
        "recompilations": names["recompile_reasons.json"] + names["recompile_reasons.txt"],
    }


def compare(example: str, backend: str, tlparse: str) -> int:
    """Print the table of one example; return how many rows only one side has."""
    with tempfile.TemporaryDirectory() as folder:
        run, words, trace = run_example(example, backend, Path(folder))
        ours, theirs = list(rows_of_manifest(run)), list(rows_of_torch(words))
        by_tlparse = counted_by_tlparse(tlparse, trace) if tlparse else {}
    lost, invented = Counter(theirs) - Counter(ours), Counter(ours) - Counter(theirs)
    print(
        f"{example}: manifest {_counts(ours)}; TORCH_LOGS {_counts(theirs)}"
        + (f"; tlparse {by_tlparse}" if by_tlparse else "")
    )
    seen: List[Row] = []
    for row in [*theirs, *invented.elements()]:
        mark = "only TORCH_LOGS" if lost[row] else "only manifest" if invented[row] else "same"
        cause = line_that_caused(run, row[1]) if row[0] == "recompile" else ""
        twice = "  TWICE" if ours.count(row) > 1 and row in seen else ""
        print(f"   {row[0]:10} {row[1]:6} {row[2]:66} {mark}{twice}{cause}")
        seen.append(row)
    return sum(lost.values()) + sum(invented.values())


def _counts(rows: List[Row]) -> str:
    kinds = Counter(kind for kind, _, _ in rows)
    return f"{kinds['break']} breaks, {kinds['recompile']} recompilations"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("examples", nargs="*", default=EXAMPLES, metavar="EXAMPLE")
    parser.add_argument("--backend", default="inductor")
    parser.add_argument("--tlparse", default="", metavar="PATH")
    arguments = parser.parse_args()
    return 1 if sum([compare(example, arguments.backend, arguments.tlparse) for example in arguments.examples]) else 0


if __name__ == "__main__":
    sys.exit(main())
