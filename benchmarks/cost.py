"""Measure what ``with depyf.prepare_debug(dir):`` around a program costs: CPU seconds and memory of whole processes.

    python benchmarks/cost.py                                     # three repeats of four programs, eager and aot_eager
    python benchmarks/cost.py --programs all --backends eager,aot_eager,inductor --caches cold,warm --repeats 5
    python benchmarks/cost.py --programs bert --ways plain,attached,TORCH_TRACE,original
    python benchmarks/cost.py --ways plain,before,attached --before DIR   # beside another checkout of this project
    python benchmarks/cost.py --programs bert --profile           # one attached run: where the time goes, by package

Each run is a separate process (cost_programs.py), with one thread; the ways to run a program alternate. CPU seconds are
user and system time of the process and its children, from its start to its end, imports included, so that the load of
the machine has little influence. ``more`` is the median of the ratios of neighbouring runs, with the lowest and
highest. ``scaled`` is the ratio of the medians of CPU seconds that were divided by the seconds in which that process
started and imported PyTorch: the same work in all ways, for a machine whose speed changes from run to run. ``enter``,
``run``, ``leave`` and ``exit`` are the differences between the parts of the attached run and those of the plain one
(medians, in ms). Memory is the peak of the process. Each run is also printed when it ends, on stderr.
What was measured is compiled to bytecode first, and the load of the machine is printed below the table.

Ways: ``plain``; ``attached``, this project; ``before``, this project as it is in the checkout ``--before``;
``TORCH_TRACE``, PyTorch's own log; ``original``, depyf 0.20.0, which is installed from PyPI into build/peers. ``warm``
runs each way once before, with caches that all ways share and keep.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import pstats
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import DefaultDict, Dict, Iterator, List, Optional, Tuple

HERE = Path(__file__).resolve().parent
PROGRAM = HERE / "cost_programs.py"
ORIGINAL = HERE.parent / "build" / "peers" / "depyf_0_20"
PROGRAMS = ("bert", "bert12", "generate", "vit", "unet", "functions", "storm")
WAYS = ("plain", "before", "attached", "TORCH_TRACE", "original")
PARTS = ("enter", "run", "leave", "exit")


@dataclass(frozen=True)
class Run:
    """One process: CPU seconds in all and by part, and the peak of its memory in MiB."""

    cpu: float
    parts: Dict[str, float]
    memory: float


def run(program: str, backend: str, way: str, caches: Path, more: Tuple[str, ...] = ()) -> Run:
    """Run the program once, with Inductor's caches at ``caches``."""
    with tempfile.TemporaryDirectory() as root:
        command = [sys.executable, str(PROGRAM), program, backend, *more]
        environment = {
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "TORCHINDUCTOR_COMPILE_THREADS": "1",  # no workers that outlive the process, and are not counted
            "TORCHINDUCTOR_CACHE_DIR": str(caches),
        }
        for name in ("TORCH_TRACE", "PYTHONDONTWRITEBYTECODE"):  # an installed package has its bytecode beside it
            environment.pop(name, None)
        if way == "TORCH_TRACE":
            environment["TORCH_TRACE"] = os.path.join(root, "trace")
        elif way in ("before", "attached", "original"):
            command += ["--dump", os.path.join(root, "dump")]
        if way == "original":
            environment["PYTHONPATH"] = str(original())
        elif way == "before":
            environment["PYTHONPATH"] = os.environ["DEPYF_COST_BEFORE"]
        # Files and no pipes: a full pipe without a reader would stop the program. wait4() returns the CPU time.
        with open(os.path.join(root, "output"), "w+") as output, open(os.path.join(root, "errors"), "w+") as problems:
            process = subprocess.Popen(command, env=environment, stdout=output, stderr=problems)
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            for file in (output, problems):
                file.seek(0)
            said, errors = output.read(), problems.read()
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{errors}")
    cpu = used.ru_utime + used.ru_stime
    parts = json.loads(said.splitlines()[-1])
    parts["exit"] = cpu - sum(parts.values())
    return Run(cpu, parts, used.ru_maxrss / 1024)


def original() -> Path:
    """Return the location of depyf 0.20.0; install it from PyPI if it is missing."""
    if not ORIGINAL.exists():
        pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*pip, "--target", str(ORIGINAL), "depyf==0.20.0", "astor", "dill"], check=True)
    return ORIGINAL


def compile_modules(ways: List[str]) -> None:
    """Write the bytecode of what the ways import; a process without it takes seconds longer."""
    folders = {"attached": HERE.parent / "src", "before": Path(os.environ.get("DEPYF_COST_BEFORE", ""))}
    if "original" in ways:
        folders["original"] = original()
    for way, folder in folders.items():
        if way in ways and not compileall.compile_dir(str(folder), quiet=2):
            raise SystemExit(
                f"{folder} could not be compiled to bytecode: the figures of {way} would be of another thing"
            )


def measure(program: str, backend: str, ways: List[str], warm: bool, repeats: int) -> Dict[str, List[Run]]:
    """Run the program ``repeats`` times in each way, alternating."""
    found: Dict[str, List[Run]] = {way: [] for way in ways}
    with tempfile.TemporaryDirectory() as root:
        caches = Path(root, "caches")
        for repeat in range(repeats + warm):
            for way in ways if repeat % 2 == 0 else reversed(ways):
                found[way].append(run(program, backend, way, caches))
                print(progress(program, backend, way, found[way][-1]), file=sys.stderr, flush=True)
                if not warm:
                    shutil.rmtree(caches, ignore_errors=True)
    return {way: runs[warm:] for way, runs in found.items()}


def progress(program: str, backend: str, way: str, one: Run) -> str:
    """Return the line about one run, which stays where the benchmark is stopped before it has its table."""
    parts = ", ".join(f"{part} {seconds:.2f}" for part, seconds in one.parts.items())
    return f"{program}, {backend}, {way}: {one.cpu:.2f} s of CPU ({parts}), {one.memory:.0f} MiB"


def table(program: str, backend: str, warm: bool, found: Dict[str, List[Run]]) -> Iterator[str]:
    """Yield the rows of one program: one for each way."""
    plain = found["plain"]
    of_plain = in_imports(plain)
    for way, runs in found.items():
        ratios = sorted(100 * (one.cpu / other.cpu - 1) for one, other in zip(runs, plain))
        cells = [program, backend, "warm" if warm else "cold", way]
        cells += [f"{statistics.median(one.cpu for one in runs):.2f} s"]
        if way == "plain":
            spread = sorted(100 * (one.cpu / statistics.median(each.cpu for each in plain) - 1) for one in plain)
            cells += ["", f"{spread[0]:+.1f} .. {spread[-1]:+.1f} %", ""]
        else:
            cells += [f"{statistics.median(ratios):+.1f} %", f"{ratios[0]:+.1f} .. {ratios[-1]:+.1f} %"]
            cells += [f"{100 * (in_imports(runs) / of_plain - 1):+.1f} %"]
        for part in PARTS:
            more = statistics.median(one.parts[part] for one in runs) - statistics.median(
                one.parts[part] for one in plain
            )
            cells.append("" if way == "plain" else f"{1000 * more:+.0f}")
        cells.append(f"{statistics.median(one.memory for one in runs):.0f}")
        yield row(*cells)


def in_imports(runs: List[Run]) -> float:
    """Return the median of the CPU seconds of runs, divided by the seconds in which each has imported PyTorch."""
    return statistics.median(one.cpu / one.parts["import"] for one in runs)


def row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def profile(program: str, backend: str, top: int) -> Iterator[str]:
    """Yield where the time of one attached run goes, by package and by function, according to cProfile."""
    with tempfile.TemporaryDirectory() as root:
        file = os.path.join(root, "profile")
        run(program, backend, "attached", Path(root, "caches"), ("--profile", file))
        stats = pstats.Stats(file)
    of_package: DefaultDict[str, float] = defaultdict(float)
    functions: List[Tuple[float, float, int, str]] = []
    for (path, line, name), (_, calls, own, cumulated, _callers) in stats.stats.items():  # type: ignore[attr-defined]
        package = _package(path)
        if package is None:
            continue
        of_package[package] += own
        functions.append((own, cumulated, calls, f"{path.rpartition('depyf/')[2]}:{line} {name}"))
    yield f"{program}, {backend}: own seconds of our functions, what they call of others left out"
    for package, seconds in sorted(of_package.items(), key=lambda each: -each[1]):
        yield f"{seconds:8.3f}  {package}"
    yield f"{'own':>8}{'in all':>9}{'calls':>9}"
    for own, cumulated, calls, function in sorted(functions, reverse=True)[:top]:
        yield f"{own:8.3f}{cumulated:9.3f}{calls:9}  {function}"


def _package(path: str) -> Optional[str]:
    _, found, rest = path.rpartition("/depyf/")
    if not found:
        return None
    parts = rest.split("/")
    return "/".join(parts[: 2 if parts[0] in ("dynamo", "report") else 1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", default="bert,generate,functions,storm", help=f"all, or of {', '.join(PROGRAMS)}")
    parser.add_argument("--backends", default="eager,aot_eager")
    parser.add_argument("--ways", default="plain,attached", help=f"of {', '.join(WAYS)}; plain is always there")
    parser.add_argument("--before", type=Path, help="another checkout of this project, for the way before")
    parser.add_argument("--caches", default="cold", help="cold, warm or both; they matter to Inductor only")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--profile", action="store_true", help="print where the time of one attached run goes")
    parser.add_argument("--top", type=int, default=30, help="print so many functions of the profile")
    options = parser.parse_args()
    if "before" in options.ways.split(","):
        if options.before is None:
            parser.error("the way before needs --before DIR")
        os.environ["DEPYF_COST_BEFORE"] = str(options.before.resolve() / "src")
    programs = list(PROGRAMS) if options.programs == "all" else options.programs.split(",")
    ways = ["plain", *(way for way in options.ways.split(",") if way != "plain")]
    compile_modules(ways)
    before = os.getloadavg()[0]
    if not options.profile:
        print(row("program", "backend", "caches", "way", "CPU", "more", "from .. to", "scaled", *PARTS, "MiB"))
        print("|" + "---|" * 13)
    for program in programs:
        for backend in options.backends.split(","):
            if options.profile:
                print("\n".join(profile(program, backend, options.top)), flush=True)
                continue
            for caches in options.caches.split(","):
                if caches == "warm" and backend != "inductor":
                    continue
                found = measure(program, backend, ways, caches == "warm", options.repeats)
                print("\n".join(table(program, backend, caches == "warm", found)), flush=True)
    print(f"\nLoad of the machine (1 minute): {before:.1f} before, {os.getloadavg()[0]:.1f} after")
    return 0


if __name__ == "__main__":
    sys.exit(main())
