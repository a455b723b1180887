"""Check that every graph of ten models runs as a separate script and gives the same outputs.

    python tools/check/check_extracted.py [MODEL ...] [--backend aot_eager] [--text]

The models are those of tests/programs/kernel_models.py. Each graph that a call runs (captured, forward, backward) is
written with its actual inputs, and run in a separate process: eagerly it must give the result of the compiled model,
and compiled with its backend the same. With ``--text``, scripts are made from the files of a dump alone, with generated
values: they must run, and give the same eagerly and compiled.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any, Iterator, List, Tuple

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "programs")]

import kernel_models  # noqa: E402
import torch  # noqa: E402

import depyf  # noqa: E402
from depyf.dynamo.entries.call_target import resolve  # noqa: E402
from depyf.dynamo.questions.extract.question import run_script, write  # noqa: E402
from depyf.dynamo.questions.extract.sources import run_of  # noqa: E402

Result = Tuple[str, bool, str]


def from_a_call(name: str, backend: str, folder: str) -> Iterator[Result]:
    """Yield the result of every graph of one call."""
    torch.manual_seed(0)
    function, arguments = getattr(kernel_models, name)()
    for source in run_of(resolve(torch.compile(function, backend=backend), "extract"), arguments, {}):
        script = write(source, f"{folder}/{source.name}.py", backend, values=True)
        good, output = run_script(script.path)
        yield source.name, good and not script.notes, "; ".join(script.notes) + output


def from_a_dump(name: str, backend: str, folder: str) -> Iterator[Result]:
    """Yield the result of every graph file of a dump."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    function, arguments = getattr(kernel_models, name)()
    with depyf.prepare_debug(f"{folder}/dump"):
        torch.compile(function, backend=backend)(*arguments).float().square().mean().backward()
    for path in sorted(Path(folder, "dump").rglob("__compiled_fn_*.*.*.py")):
        if ".AOT_" in path.name:  # AOTAutograd's wrappers are not graphs
            continue
        graph = path.name[: -len(".py")]
        answer = depyf.extract(f"{folder}/dump", graph, path=f"{folder}/{graph}.py")
        yield graph, bool(answer.runs), answer.output + "; ".join(answer.notes)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"some of: {', '.join(kernel_models.MODELS)}")
    parser.add_argument("--backend", default="inductor")
    parser.add_argument("--text", action="store_true", help="from the files of a dump")
    arguments = parser.parse_args()
    total: List[Any] = [0, 0]
    print(f"{'model':26} {'graphs':>7} {'run, same':>10}")
    for name in arguments.models or list(kernel_models.MODELS):
        with tempfile.TemporaryDirectory() as folder:
            make = from_a_dump if arguments.text else from_a_call
            results = list(make(name, arguments.backend, folder))
        good = sum(ok for _, ok, _ in results)
        total = [total[0] + len(results), total[1] + good]
        print(f"{name:26} {len(results):7} {good:10}", flush=True)
        for graph, ok, output in results:
            if not ok:
                print("   ", graph, "\n       ", "\n        ".join(output.strip().splitlines()[-8:]))
    print(f"{'all':26} {total[0]:7} {total[1]:10}")
    return 0 if total[0] == total[1] else 1


if __name__ == "__main__":
    sys.exit(main())
