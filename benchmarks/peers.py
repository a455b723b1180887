"""Compare other decompilers with this one, on the same code objects: the share that is right, and the time.

    python benchmarks/peers.py                                  # with every Python of .ci/pythons that a peer supports
    python benchmarks/peers.py --python ~/3.8/bin/python3 --modules textwrap,json.decoder
    python benchmarks/peers.py --growth                         # seconds at 1,000, 10,000 and 50,000 instructions
    python benchmarks/peers.py --mirrors names,constants,lines  # on altered copies (mirrors.py)
    python benchmarks/peers.py --pycdc ~/pycdc/pycdc            # beside that program, which is not on PyPI

The peers are installed from PyPI, each into its own virtual environment (build/peers), and are run as black boxes in
separate processes. The code objects are the functions and methods of standard library modules, each compiled as a
module of its own, so that one failure costs one function and not the module around it. They are compiled without
decorators and docstrings: one of the peers drops those, and would have almost nothing right. Nor with annotations, for
which the module has code of its own since 3.14.

A result is judged by compiling it again and comparing with the original: ``identical`` has the same bytecode, constants
and names; ``proved`` adds what our verifier proves to be equivalent. Otherwise it is ``differs`` (according to the
verifier), ``undecided`` (the verifier can't decide), ``no code`` (it does not compile, or has no such function) or
``refused`` (an error, or none within the time limit). ``identical`` does not depend on our verifier, the others do.
``text``: the share that has the author's text, as ``measure_readability.py`` compares it.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import json
import marshal
import os
import platform
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple
from typing import Counter as Counts

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from author_text import author_text
from decompile import BRANCHY, STRAIGHT, function_of
from mirrors import MIRRORS, OF_CODE, OF_SOURCE, Function

from depyf.decompiler import instruction_count
from depyf.decompiler.verify import Finding, compare
from depyf.sweep.targets import find_files

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / "build" / "peers"
DRIVER = Path(__file__).resolve().parent / "peer_driver.py"
MODULES = "textwrap,heapq,shlex,json.decoder,string,fractions,calendar,configparser,argparse,difflib,csv,statistics"
OUTCOMES = ("identical", "proved", "differs", "undecided", "no code", "refused")
SIZES = (1_000, 10_000, 50_000)


@dataclass(frozen=True)
class Peer:
    """The requirement for pip, and the versions of CPython that the peer supports according to its documentation."""

    requirement: str
    versions: Tuple[Tuple[int, int], ...]


PEERS = {
    "depyf": Peer("depyf==0.20.0", ((3, 8), (3, 9), (3, 10), (3, 11))),
    "uncompyle6": Peer("uncompyle6==3.9.3", ((3, 8),)),
    "decompyle3": Peer("decompyle3==3.9.3", ((3, 8),)),
}


@dataclass(frozen=True)
class Unit:
    """One function: its code object in a module of its own, and its source."""

    name: str
    code: CodeType
    source: Optional[Function] = None


@dataclass
class Answer:
    """The result of a peer for one code object."""

    seconds: float
    source: Optional[str]
    error: Optional[str]


# --- code objects ------------------------------------------------------------------------------------------------


def functions(modules: Sequence[str], mirror: str = "plain") -> Iterator[Unit]:
    """Yield every function and method in the modules, without decorators, altered as ``mirror`` says."""
    for file in find_files(modules, tests=False):
        tree = ast.parse(Path(file).read_bytes())
        bodies = [tree.body, *(node.body for node in tree.body if isinstance(node, ast.ClassDef))]
        for node in (node for body in bodies for node in body):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                node.decorator_list = []
                _drop_docstrings(node)
                _drop_annotations(node)
                OF_SOURCE.get(mirror, lambda function: None)(node)
                code = OF_CODE.get(mirror, lambda code: code)(_compiled(ast.Module([node], []), file))
                yield Unit(f"{Path(file).stem}.{node.name}:{node.lineno}", code, node)


def _drop_docstrings(function: ast.AST) -> None:
    for node in ast.walk(function):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            if ast.get_docstring(node, clean=False) is not None:
                node.body = node.body[1:] or [ast.copy_location(ast.Pass(), node.body[0])]


def _drop_annotations(function: ast.AST) -> None:
    for node in ast.walk(function):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            node.returns = None
        elif isinstance(node, ast.arg):
            node.annotation = None


def _compiled(source: Any, file: str) -> CodeType:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        code: CodeType = compile(source, file, "exec", dont_inherit=True)
    return code


def function_of_module(module: CodeType) -> Optional[CodeType]:
    return next((each for each in module.co_consts if isinstance(each, CodeType)), None)


def grown() -> Iterator[Unit]:
    """Yield generated functions of growing size, as modules."""
    for shape, pattern in (("straight-line", STRAIGHT), ("branchy", BRANCHY)):
        for count in SIZES:
            yield Unit(f"{shape} {count:,}", _module_of(function_of(count, pattern)))


def _module_of(code: CodeType) -> CodeType:
    """Return a module that defines the function ``f`` with ``code``."""
    module = _compiled("def f(a, b, c, d, f):\n    pass\n", "<benchmark>")
    consts = tuple(code if isinstance(const, CodeType) else const for const in module.co_consts)
    return module.replace(co_consts=consts)


# --- the peers ---------------------------------------------------------------------------------------------------


def python_of(peer: str, cache: Path) -> Path:
    """Return the Python that has ``peer`` installed; it is made when it is needed."""
    folder = cache / f"{peer}-{platform.python_version()}"
    done = folder / "done"
    python = folder / "bin" / "python"
    if not done.exists():
        print(f"installing {PEERS[peer].requirement} for CPython {platform.python_version()}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        install = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
        subprocess.run([*install, "setuptools", PEERS[peer].requirement], check=True)
        done.touch()
    return python


def answers(peer: str, files: Sequence[Path], limit: float, cache: Path) -> List[Answer]:
    """Return one result for each file. A peer that dies is started again after the file that killed it."""
    python = python_of(peer, cache) if peer in PEERS else Path(sys.executable)
    found: List[Answer] = []
    while len(found) < len(files):
        with tempfile.TemporaryDirectory() as folder:
            jobs, results = Path(folder) / "jobs.json", Path(folder) / "results.jsonl"
            jobs.write_text(json.dumps([[str(file) for file in files[len(found) :]], limit]))
            done = subprocess.run(
                [str(python), str(DRIVER), peer, str(jobs), str(results)],
                cwd=folder, env=_environment(peer), capture_output=True, text=True, check=False,
            )  # fmt: skip
            lines = results.read_text().splitlines() if results.exists() else []
        found += [Answer(**json.loads(line)) for line in lines]
        if len(found) < len(files):
            found.append(Answer(0.0, None, f"the process ended: {done.stderr[-200:]}"))
    return found


def _environment(peer: str) -> Dict[str, str]:
    """Return an environment in which peers don't find this project's ``depyf``, and we find no other."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    if peer == "ours":
        environment["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), *filter(None, sys.path[1:])])
    return environment


# --- judging -----------------------------------------------------------------------------------------------------


def judge(original: CodeType, answer: Answer) -> str:
    """Return one of ``OUTCOMES``."""
    if answer.source is None:
        return "refused"
    try:
        again = function_of_module(_compiled(answer.source, "<peer>"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return "no code"
    if again is None:
        return "no code"
    if same_bytecode(original, again):
        return "identical"
    finding = compare(original, again).finding
    if finding.proved:
        return "proved"
    return "differs" if finding is Finding.DIFFERENT else "undecided"


def same_bytecode(one: CodeType, other: CodeType) -> bool:
    """Return whether both have the same instructions, constants and names, also in nested code; lines are ignored."""
    fields = ("co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_flags", "co_name", "co_argcount",
              "co_posonlyargcount", "co_kwonlyargcount", "co_exceptiontable")  # fmt: skip
    if any(getattr(one, field, None) != getattr(other, field, None) for field in fields):
        return False
    if len(one.co_consts) != len(other.co_consts):
        return False
    return all(
        same_bytecode(mine, theirs)
        if isinstance(mine, CodeType) and isinstance(theirs, CodeType)
        else repr(mine) == repr(theirs) and type(mine) is type(theirs)
        for mine, theirs in zip(one.co_consts, other.co_consts)
    )


# --- tables ------------------------------------------------------------------------------------------------------


def has_author_text(source: Optional[Function], answer: Answer) -> bool:
    """Return whether the answer is the function as it was written, apart from what leaves no trace in bytecode."""
    try:
        found = ast.parse(answer.source or "").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    written = next((each for each in found if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))), None)
    return source is not None and written is not None and author_text(source) == author_text(written)


def write_pycs(codes: Sequence[Unit], folder: Path) -> List[Path]:
    header = importlib.util.MAGIC_NUMBER + bytes(12)
    files = []
    for number, unit in enumerate(codes):
        files.append(folder / f"unit_{number:05}.pyc")
        files[-1].write_bytes(header + marshal.dumps(unit.code))
    return files


def compare_peers(
    peers: Sequence[str], modules: Sequence[str], limit: float, cache: Path, mirror: str = "plain"
) -> List[Dict[str, Any]]:
    """Return a row for each decompiler, printed as soon as it is known."""
    codes = list(functions(modules, mirror))
    originals = [function_of_module(unit.code) for unit in codes]
    instructions = sum(instruction_count(code) for code in originals if code is not None)
    print(
        f"CPython {platform.python_version()}, {mirror}: {len(codes)} functions and methods, "
        f"{instructions:,} instructions"
    )
    print(
        f"{'':<22}{'right':>8}{'text':>8}"
        + "".join(f"{outcome:>11}" for outcome in OUTCOMES)
        + f"{'ms each':>10}{'us/instr':>10}"
    )
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        files = write_pycs(codes, Path(folder))
        for peer in peers:
            found = answers(peer, files, limit, cache)
            counts: Counts[str] = Counter(
                judge(code, answer) for code, answer in zip(originals, found) if code is not None
            )
            right = (counts["identical"] + counts["proved"]) / len(codes)
            seconds = sum(answer.seconds for answer in found)
            text = sum(has_author_text(unit.source, answer) for unit, answer in zip(codes, found)) / len(codes)
            rows.append({"peer": peer, "right": right, "text": text, "seconds": seconds, **counts})
            print(
                f"{_label(peer):<22}{100 * right:>7.1f}%{100 * text:>7.1f}%"
                + "".join(f"{counts[outcome]:>11}" for outcome in OUTCOMES)
                + f"{1e3 * seconds / len(codes):>10.1f}{1e6 * seconds / instructions:>10.0f}", flush=True,
            )  # fmt: skip
    return rows


def compare_growth(peers: Sequence[str], limit: float, cache: Path) -> None:
    """Print the seconds for functions of growing size."""
    codes = list(grown())
    print(f"CPython {platform.python_version()}: seconds for one function of so many instructions")
    print(f"{'':<22}" + "".join(f"{unit.name:>22}" for unit in codes))
    with tempfile.TemporaryDirectory() as folder:
        files = write_pycs(codes, Path(folder))
        for peer in peers:
            cells = []
            for unit, answer in zip(codes, answers(peer, files, limit, cache)):
                original = function_of_module(unit.code)
                assert original is not None
                cells.append(f"{answer.seconds:.2f} {judge(original, answer)}")
            print(f"{_label(peer):<22}" + "".join(f"{cell:>22}" for cell in cells), flush=True)


def _label(peer: str) -> str:
    return PEERS[peer].requirement.replace("==", " ") if peer in PEERS else peer


def pythons() -> Iterator[str]:
    """Yield the interpreters that some peer supports."""
    listed = subprocess.run([str(ROOT / ".ci" / "pythons")], capture_output=True, text=True, check=True).stdout
    supported = {f"{major}.{minor}" for peer in PEERS.values() for major, minor in peer.versions}
    for line in reversed(listed.splitlines()):
        version, path = line.split(" ", 1)
        if version in supported:
            yield path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", action="append", help="an interpreter (default: those that a peer supports)")
    parser.add_argument("--modules", default=MODULES)
    parser.add_argument("--growth", action="store_true", help="generated functions of growing size instead")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for one code object (60)")
    parser.add_argument("--cache", type=Path, default=CACHE)
    parser.add_argument("--mirrors", default="plain", help=f"of {', '.join(MIRRORS)}, with commas")
    parser.add_argument("--peers", help="only these, with commas")
    parser.add_argument("--pycdc", type=Path, help="the program pycdc, as one more peer")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.here:
        status = 0
        for python in options.python or pythons():
            environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
            command = [python, __file__, "--here", *sys.argv[1:]]
            status |= subprocess.call(command, env=environment)
            print(flush=True)
        return status
    peers = ["ours", *(name for name, peer in PEERS.items() if sys.version_info[:2] in peer.versions)]
    if options.pycdc:
        os.environ["PYCDC"] = str(options.pycdc.resolve())
        peers.append("pycdc")
    if options.peers:
        peers = [name for name in peers if name in options.peers.split(",")]
    if options.growth:
        compare_growth(peers, options.limit, options.cache.resolve())
    else:
        for mirror in options.mirrors.split(","):
            compare_peers(peers, options.modules.split(","), options.limit, options.cache.resolve(), mirror)
    return 0


if __name__ == "__main__":
    sys.exit(main())
