"""Print which files depyf 0.20 and this depyf write for the same programs, as the table in ``docs/other-projects.md``.

    python tools/check/compare_with_original.py PYTHON_WITH_DEPYF_0.20

The other Python has ``depyf==0.20.0`` and the same PyTorch in its own virtual environment; it is only run. Exits with 1
when there is a kind of file that only the original has.
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
from typing import Dict, List, Tuple

ROOT = Path(__file__).resolve().parents[2]

PROGRAMS: Dict[str, List[str]] = {
    "vLLM": ["like_vllm.py"],
    "vLLM, ahead of time": ["like_vllm.py", "ahead"],
    "SGLang": ["like_sglang.py"],
    "documentation": ["like_documentation.py"],
    "the same, training": ["like_documentation.py", "training"],
    "the same, all files": ["like_documentation.py", "all"],
}

WILD = "Wild_graph"
"""With ``clean_wild_fx_code=False`` the original writes all graph modules; here only those that are not a stage."""

_SUFFIX = re.compile(r"_[0-9a-f]{8}_[0-9a-f]{4}_[0-9a-f]{4}_[0-9a-f]{4}_[0-9a-f]{12}")
_CAPTURED = re.compile(r"(__compiled_fn_\d+)\.\1\.")


def kind_of(name: str) -> str:
    """Return the kind of a file: its name without numbers, and without those of functions."""
    name = _CAPTURED.sub(r"\1.Captured_Graph.", _SUFFIX.sub("", name))
    name = re.sub(r"___compiled_fn_\d+", "", name)
    name = re.sub(r"^__compiled_fn_-?\d+\.", "", name)
    name = re.sub(r"^fx_graph_code_\w+", WILD, name)
    name = re.sub(r"^full_code_for_.*_\d+(?=\.py)", "full_code_for_<function>", name)
    name = re.sub(r"^__transformed_code_\d+_for_.*?(?=\.py)", "__transformed_code_for_<function>", name)
    name = re.sub(r"^kernel_\d+", "kernel", name)
    return re.sub(r"\.\d+\.py$", "", name).removesuffix(".py")


def files_of(python: str, program: List[str], cache: str, ours: bool) -> CounterType[str]:
    """Return how many files of each kind the program writes, run by this Python. Only compiled C++ comes from
    ``cache``: the original loses the stages of cached graphs."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": os.path.join(cache, "ours" if ours else "original")}
        environment.update(TORCHINDUCTOR_FX_GRAPH_CACHE="0", TORCHINDUCTOR_AUTOGRAD_CACHE="0")
        environment["DEPYF_FILES"] = "all"
        environment["PYTHONPATH"] = str(ROOT / "src") if ours else ""
        dump = os.path.join(folder, "dump")
        script, *arguments = program
        command = [python, str(ROOT / "tests" / "programs" / script), dump, *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
        return Counter(kind_of(path.name) for path in Path(dump).iterdir() if path.is_file())


def table(found: Dict[str, Tuple[CounterType[str], CounterType[str]]]) -> List[str]:
    """Return the lines of the table: for each kind and program, how many files the original and this depyf wrote."""
    kinds = sorted({kind for pair in found.values() for each in pair for kind in each}, key=str.lower)
    kinds.sort(key=lambda kind: not any(original[kind] for original, _ in found.values()))
    lines = [f"| File | {' | '.join(found)} |", f"|---|{'---:|' * len(found)}"]
    for kind in kinds:
        cells = [f"{original[kind] or '-'} / {here[kind] or '-'}" for original, here in found.values()]
        lines.append(f"| `{kind}` | {' | '.join('' if cell == '- / -' else cell for cell in cells)} |")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("original", help="the Python of an environment with depyf 0.20.0")
    parser.add_argument("--cache", default=os.path.join(tempfile.gettempdir(), "compare_with_original"))
    arguments = parser.parse_args()
    found = {
        title: (
            files_of(arguments.original, program, arguments.cache, ours=False),
            files_of(sys.executable, program, arguments.cache, ours=True),
        )
        for title, program in PROGRAMS.items()
    }
    print("\n".join(table(found)))
    lost = [
        (title, kind)
        for title, (theirs, ours) in found.items()
        for kind in theirs
        if theirs[kind] > ours[kind] and kind != WILD
    ]
    for title, kind in lost:
        print(f"only the original has it, or more of it: {kind} ({title})", file=sys.stderr)
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
