"""Build the package as it would be published, and try it: reproducible, installable, complete, without the source tree.

    python tools/check/check_package.py [STEP...] [--python 3.X...] [--torch 3.X+2.Y.Z...] [--work DIR]
        [--keep-dist DIR]

Steps, all of them without an argument:

- ``build``: twice, from two copies of the committed files in two folders, with the same SOURCE_DATE_EPOCH. Both
  archives must be equal byte for byte, and have what they should.
- ``install``: into a fresh virtual environment of each ``--python``; commands, and tests that run against the wheel.
- ``torch``: the same with the extra, for each ``--torch``.
- ``upgrade``: over depyf 0.20.0.
- ``demo``: ``make demo`` in the unpacked source archive.

Prints a row of a Markdown table for each installation, and exits with 1 where something failed.

Needs the network for pip, 10 GB for each PyTorch, which is removed afterwards, and changes nothing in the repository.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import Dict, List, Sequence, Tuple

ROOT = Path(__file__).resolve().parents[2]
STEPS = ("build", "install", "torch", "upgrade", "demo")
PYTHONS = ("3.8", "3.11", "3.13", "3.14")
PAIRS = ("3.8+2.2.2", "3.11+2.13.0", "3.13+2.15.0", "3.14+2.15.0")
OLD = "0.20.0"
TESTS = (
    "tests/decompiler/bytecode/test_pyc.py",
    "tests/decompiler/verify/test_proofs.py",
    "tests/dropin/test_decompile.py",
)
TESTS_WITH_TORCH = ("tests/dynamo/test_pair.py",)
TIMEOUT = 1800

WHERE = "import depyf, sys; assert depyf.__file__.startswith(sys.prefix), depyf.__file__; print(depyf.__version__)"
NO_TORCH = "import depyf; depyf.decompile(depyf.decompile); depyf.prepare_debug('x')"


class Failed(Exception):
    """Something of the package is not as it should be."""


class Machine:
    """One Python, and the folder in which the package is tried with it."""

    def __init__(self, version: str, work: Path) -> None:
        found = subprocess.run([str(ROOT / ".ci/pythons"), version], capture_output=True, text=True, check=False)
        if found.returncode:
            raise Failed(found.stderr.strip())
        self.python = found.stdout.strip()
        self.folder = work / f"try_{version}"
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)

    def run(self, *command: str, status: int = 0) -> str:
        """Return what ``command`` prints, run in the folder. Raises ``Failed`` for another exit status."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "DEPYF_", "TORCH"))}
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=kept,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
        if done.returncode != status:
            raise Failed(f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout[-3000:]}")
        return done.stdout

    def make(self) -> str:
        """Return the Python of a new virtual environment."""
        self.run(self.python, "-m", "venv", "venv")
        return f"{self.folder}/venv/bin/python"

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def build(work: Path) -> Tuple[Path, Path]:
    """Return the source archive and the wheel; raises ``Failed`` where a second build gives another one."""
    epoch = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True, check=True)
    builder = work / "builder"
    subprocess.run([sys.executable, "-m", "venv", str(builder)], check=True)
    python = str(builder / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "-q", "build", "twine"], check=True)
    results: List[Dict[str, bytes]] = []
    for name in ("one", "another_folder"):
        tree = work / name
        tree.mkdir()
        archive = work / "tree.tar"
        subprocess.run(["git", "archive", "-o", str(archive), "HEAD"], cwd=ROOT, check=True)
        with tarfile.open(archive) as packed:
            packed.extractall(tree)
        environment = {**os.environ, "SOURCE_DATE_EPOCH": epoch.stdout.strip()}
        called = [python, "-m", "build", str(tree)]
        built = subprocess.run(called, env=environment, capture_output=True, text=True, check=False)
        if built.returncode:
            raise Failed(built.stdout[-2000:] + built.stderr[-2000:])
        results.append({path.name: path.read_bytes() for path in sorted((tree / "dist").iterdir())})
    if results[0] != results[1]:
        raise Failed("two builds differ")
    dist = work / "one" / "dist"
    files = sorted(str(path) for path in dist.iterdir())
    checked = subprocess.run([python, "-m", "twine", "check", "--strict", *files], capture_output=True, text=True)
    if checked.returncode:
        raise Failed(checked.stdout + checked.stderr)
    wheel, source = next(dist.glob("*.whl")), next(dist.glob("*.tar.gz"))
    check_contents(wheel)
    for path in (source, wheel):
        print(f"{path.name}: {path.stat().st_size:,} bytes; two builds are equal; twine check passes", flush=True)
    return source, wheel


def check_contents(wheel: Path) -> None:
    """Raise ``Failed`` where the wheel lacks a module, or has what is not the package's."""
    with zipfile.ZipFile(wheel) as packed:
        names = set(packed.namelist())
        metadata = next(packed.read(name).decode() for name in names if name.endswith(".dist-info/METADATA"))
    tracked = subprocess.run(["git", "ls-files", "src/depyf"], cwd=ROOT, capture_output=True, text=True, check=True)
    ours = {name[len("src/") :] for name in tracked.stdout.splitlines()}
    packaged = {name for name in names if ".dist-info/" not in name}
    if packaged != ours:
        raise Failed(f"the wheel and src/depyf differ: {sorted(packaged ^ ours)[:10]}")
    if "](docs/" in metadata or "<!--" in metadata:
        raise Failed("the description has links that lead nowhere outside of the repository")


def install(version: str, wheel: Path, work: Path) -> str:
    """Return the row for the wheel alone on one Python."""
    machine = Machine(version, work)
    try:
        python = machine.make()
        depyf = str(Path(python).parent / "depyf")
        add_wheel(machine, wheel)
        machine.run(python, "-m", "pip", "install", "-q", f"./{wheel.name}")
        machine.run(python, "-m", "pip", "check")
        packages = machine.run(python, "-m", "pip", "list", "--format=freeze").split()
        needed = [each for each in packages if not each.lower().startswith(("pip=", "setuptools=", "wheel=", "depyf="))]
        machine.run(python, "-c", WHERE)
        if "# depyf: exact" not in machine.run(depyf, "decompile", "heapq:heappush", "--verdict"):
            raise Failed("heapq:heappush is not exact")
        machine.run(depyf, "--version")
        machine.run(depyf, "sweep", "json", "--no-tests")
        if "ImportError" not in machine.run(python, "-c", NO_TORCH, status=1):
            raise Failed("prepare_debug without PyTorch raises something else than ImportError")
        counts = run_tests(machine, python, TESTS)
        return row(machine, python, "none", needed, "`--version`, `decompile`, `sweep json`", counts)
    finally:
        machine.remove()


def with_torch(pair: str, wheel: Path, work: Path) -> str:
    """Return the row for the wheel with the extra ``torch``."""
    version, torch = pair.split("+")
    machine = Machine(version, work)
    try:
        python = machine.make()
        depyf = str(Path(python).parent / "depyf")
        add_wheel(machine, wheel)
        numpy = "numpy<2" if torch.startswith("2.2") else "numpy"
        machine.run(python, "-m", "pip", "install", "-q", f"./{wheel.name}[torch]", f"torch=={torch}", numpy)
        machine.run(python, "-m", "pip", "check")
        machine.run(python, "-c", WHERE)
        shutil.copy(ROOT / "examples" / "branch.py", machine.folder)
        said = machine.run(depyf, "run", "-o", "dump", "branch.py")
        if "compiled as 3 graphs, 1 graph break" not in said or not (machine.folder / "dump/index.html").exists():
            raise Failed(f"depyf run branch.py prints\n{said}")
        machine.run(depyf, "report", "dump", "-o", "page.html")
        counts = run_tests(machine, python, TESTS_WITH_TORCH)
        return row(machine, python, "torch", [f"torch {torch}"], "`run branch.py`, `report`", counts)
    finally:
        machine.remove()


def upgrade(wheel: Path, work: Path) -> str:
    """Return what ``pip install -U`` over the old release leaves: the files of the wheel, and none of the old ones."""
    machine = Machine("3.11", work)
    try:
        python = machine.make()
        add_wheel(machine, wheel)
        machine.run(python, "-m", "pip", "install", "-q", "--no-deps", f"depyf=={OLD}")
        before = machine.run(python, "-m", "pip", "show", "-f", "depyf")
        machine.run(python, "-m", "pip", "install", "-q", "-U", f"./{wheel.name}")
        machine.run(python, "-c", WHERE)
        site = next((machine.folder / "venv").glob("lib/python3*/site-packages"))
        left = {
            path.relative_to(site).as_posix()
            for path in (site / "depyf").rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }
        with zipfile.ZipFile(wheel) as packed:
            ours = {name for name in packed.namelist() if name.startswith("depyf/")}
        expected = {"depyf", f"depyf-{version_of(wheel)}.dist-info"}
        others = sorted({path.name for path in site.glob("depyf*")} - expected)
        if left != ours or others:
            raise Failed(f"left of {OLD}: {sorted(left ^ ours)} {others}")
        return f"over {OLD} ({before.count('depyf/')} files): only the {len(ours)} files of the wheel are there"
    finally:
        machine.remove()


def demo(source: Path, work: Path) -> str:
    """Return what ``make demo`` ends with in the unpacked source archive."""
    folder = work / "unpacked"
    with tarfile.open(source) as packed:
        packed.extractall(folder)
    (tree,) = folder.iterdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "DEPYF_", "MAKE"))}
    done = subprocess.run(["make", "demo"], cwd=tree, env=kept, capture_output=True, text=True, timeout=TIMEOUT)
    lines = done.stdout.strip().splitlines()
    if done.returncode or "equivalent: proved" not in lines[-1]:
        raise Failed(done.stdout[-2000:] + done.stderr[-2000:])
    return f"{len(lines)} lines, the last one: {lines[-1]}"


def add_wheel(machine: Machine, wheel: Path) -> None:
    shutil.copy(wheel, machine.folder)


def version_of(wheel: Path) -> str:
    return wheel.name.split("-")[1]


def run_tests(machine: Machine, python: str, tests: Sequence[str]) -> str:
    """Return pytest's last line for tests that see the installed package, and no source tree."""
    shutil.copytree(ROOT / "tests", machine.folder / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, machine.folder)
    shutil.copytree(ROOT / "examples", machine.folder / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    machine.run(python, "-m", "pip", "install", "-q", "pytest>=7.4", "hypothesis>=6.80")
    said = machine.run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests)
    return said.strip().splitlines()[-1].strip("= ").split(" in ")[0]


def row(machine: Machine, python: str, extra: str, needed: Sequence[str], commands: str, counts: str) -> str:
    version = machine.run(python, "-c", "import platform; print(platform.python_version())").strip()
    return f"| {version} | {extra} | {', '.join(needed) or 'nothing'} | {commands} | {counts} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("steps", nargs="*", metavar="STEP", help=", ".join(STEPS))
    parser.add_argument("--python", nargs="+", default=PYTHONS, metavar="3.X")
    parser.add_argument("--torch", nargs="*", default=PAIRS, metavar="3.X+2.Y.Z")
    parser.add_argument("--work", type=Path, help="where to build and install (a new temporary folder)")
    parser.add_argument("--keep-dist", type=Path, metavar="DIR", help="copy the source archive and the wheel there")
    options = parser.parse_args()
    steps = options.steps or STEPS
    if set(steps) - set(STEPS):
        parser.error(f"steps are {', '.join(STEPS)}")
    failed = 0
    if options.work is not None:
        options.work.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="depyf_package_", dir=options.work) as name:
        work = Path(name)
        try:
            source, wheel = build(work)
        except Failed as error:
            print(f"build: FAILED: {error}")
            return 1
        if options.keep_dist is not None:
            options.keep_dist.mkdir(parents=True, exist_ok=True)
            for path in (source, wheel):
                shutil.copy(path, options.keep_dist)
        jobs = [("install", lambda each=each: install(each, wheel, work)) for each in options.python]
        jobs += [("torch", lambda each=each: with_torch(each, wheel, work)) for each in options.torch]
        jobs += [("upgrade", lambda: upgrade(wheel, work)), ("demo", lambda: demo(source, work))]
        for step, job in jobs:
            if step in steps:
                try:
                    print(job(), flush=True)
                except Failed as error:
                    failed += 1
                    print(f"{step}: FAILED: {error}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
