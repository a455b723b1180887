"""For what share of functions does the decompiled source have the syntax tree of the source it was compiled from?

    python tools/measure_readability.py json textwrap                # modules, folders, files
    python tools/measure_readability.py --stdlib --sample 0.05 -j 2  # a fixed sample of the standard library
    python tools/measure_readability.py json --top 20 --show         # what differs, by kind, with both texts

Every function is decompiled alone, as ``depyf decompile`` does it, and counts as one of

    same tree      the trees are the same after ``tests/support/same_source.py``: its rules say what bytecode can't hold
    same code      another text, but it compiles to the same operations in the same order (the verdict ``exact``):
                   nothing but line numbers tells the two apart
    other text     what a decompiler could in principle get right
    no source      refused, or not proved

Decompilation is not the question here: ``depyf sweep`` measures that.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import multiprocessing
import os
import signal
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any, Dict, Iterator, List, Optional, Tuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

from same_source import Function, canonical_tree, without_surroundings

from depyf.decompiler import decompile_code
from depyf.result import DecompilationError, Verdict
from depyf.source.text import to_text
from depyf.sweep.pool import Selection
from depyf.sweep.targets import find_files, read_module, stdlib_folder, targets_of

SAME_TREE, SAME_CODE, OTHER_TEXT, NO_SOURCE = "same tree", "same code", "other text", "no source"
SECONDS = 20
"""Of CPU time for one function."""


@dataclass(frozen=True)
class Row:
    """One function. ``difference`` says what kind comes first, ``texts`` are both sources, laid out alike."""

    label: str
    outcome: str
    difference: str = ""
    texts: Tuple[str, str] = ("", "")


class TimeLimit(BaseException):
    """No ``Exception``, so that no handler in the decompiler swallows it."""


# --- what there is to compare


def functions_in(module: ast.Module) -> Iterator[Tuple[Tuple[int, str], Function, Optional[str]]]:
    """Every function with the key that its code object has, too: its first line and its name; and its class's name."""

    def walk(node: ast.AST, owner: Optional[str]) -> Iterator[Tuple[Tuple[int, str], Function, Optional[str]]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                line = min([child.lineno, *(each.lineno for each in child.decorator_list)])
                yield (line, child.name), child, owner
            yield from walk(child, child.name if isinstance(child, ast.ClassDef) else owner)

    return walk(module, None)


def measure_file(path: str, selection: Selection) -> List[Row]:
    try:
        module = read_module(path)
        tree = ast.parse(Path(path).read_bytes())
    except (SyntaxError, ValueError):
        return []  # test data that is no Python
    written: Dict[Tuple[int, str], List[Tuple[Function, Optional[str]]]] = {}
    for key, function, owner in functions_in(tree):
        written.setdefault(key, []).append((function, owner))
    rows = []
    for target in targets_of(module, path):
        candidates = written.get((target.line, target.code.co_name), [])
        if selection.takes(target) and len(candidates) == 1:  # not one of several of that name on one line
            function, owner = candidates[0]
            rows.append(measure(f"{path}:{target.line} {target.qualname}", function, owner, target.code))
    return rows


# --- one function


def measure(label: str, function: Function, owner: Optional[str], code: CodeType) -> Row:
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        answer = decompile_code(code)
        if not answer.verdict.proved:
            return Row(label, NO_SOURCE, f"not proved: {answer.reason}")
    except (DecompilationError, TimeLimit) as error:
        return Row(label, NO_SOURCE, f"{type(error).__name__}: {error}")
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    decompiled = answer.tree.body[0]
    assert isinstance(decompiled, (ast.FunctionDef, ast.AsyncFunctionDef))
    left, right = canonical_tree(function, owner), canonical_tree(decompiled, None)
    if ast.dump(left) == ast.dump(right):
        return Row(label, SAME_TREE)
    outcome = SAME_CODE if answer.verdict is Verdict.EXACT else OTHER_TEXT
    return Row(label, outcome, first_difference(left, right), (text_of(function), text_of(decompiled)))


def text_of(function: Function) -> str:
    bare = without_surroundings(function)
    return to_text(ast.fix_missing_locations(ast.Module(body=[bare], type_ignores=[])))


# --- kinds of difference


def first_difference(left: Any, right: Any, place: str = "") -> str:
    """Where two trees part first, in words: the node and field, and what stands there in each."""
    if isinstance(left, list):
        for one, other in zip(left, right):
            if not _alike(one, other):
                return first_difference(one, other, place)
        rest = left[len(right) :] or right[len(left) :]
        side = "only in the original" if len(left) > len(right) else "only in the decompiled"
        return f"{place}: {_named(rest[0])} {side}"
    if isinstance(left, ast.AST) and type(left) is type(right):
        for field in left._fields:
            one, other = getattr(left, field, None), getattr(right, field, None)
            if not _alike(one, other):
                return first_difference(one, other, f"{type(left).__name__}.{field}")
    return f"{place}: {_named(left)} became {_named(right)}"


def _alike(left: Any, right: Any) -> bool:
    return _dump(left) == _dump(right)


def _dump(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_dump, value)) + "]"
    return ast.dump(value) if isinstance(value, ast.AST) else repr(value)


def _named(value: Any) -> str:
    if isinstance(value, ast.AST):
        return type(value).__name__
    return "nothing" if value is None else type(value).__name__


# --- all of them


def _start_worker() -> None:
    def stop(_number: int, _frame: Any) -> None:
        raise TimeLimit(f"more than {SECONDS} s")

    signal.signal(signal.SIGPROF, stop)


def _measure_one(task: Tuple[str, Selection]) -> List[Row]:
    return measure_file(*task)


def measure_files(files: List[str], selection: Selection, jobs: int) -> List[Row]:
    tasks = [(path, selection) for path in sorted(files, key=os.path.getsize, reverse=True)]
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    with context.Pool(jobs, _start_worker) as pool:
        return [row for rows in pool.imap_unordered(_measure_one, tasks) for row in rows]


def report(rows: List[Row], top: int, examples: int, show: bool) -> None:
    counts = Counter(row.outcome for row in rows)
    for outcome in (SAME_TREE, SAME_CODE, OTHER_TEXT, NO_SOURCE):
        print(f"{outcome:12}{counts[outcome]:8}{100 * counts[outcome] / len(rows):9.2f} %")
    print(f"{'functions':12}{len(rows):8}   on CPython {sys.version.split()[0]}")
    kinds: Dict[Tuple[str, str], List[Row]] = {}
    for row in rows:
        if row.outcome != SAME_TREE:
            kinds.setdefault((row.outcome, row.difference), []).append(row)
    ordered = sorted(kinds.items(), key=lambda each: (-len(each[1]), each[0]))
    for (outcome, difference), members in ordered[:top]:
        print(f"\n{len(members):6}  {outcome}: {difference}")
        for row in sorted(members, key=lambda each: len(each.texts[0]))[:examples]:
            print(f"        {row.label}")
            if show:
                lines = difflib.unified_diff(row.texts[0].splitlines(), row.texts[1].splitlines(), lineterm="", n=2)
                print("".join(f"            {line}\n" for line in list(lines)[2:40]), end="")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="MODULE|FOLDER|FILE")
    parser.add_argument("--stdlib", action="store_true", help="the standard library of this Python, without its tests")
    parser.add_argument("--sample", type=float, default=1.0, metavar="SHARE", help="a share of the functions")
    parser.add_argument("--name", metavar="REGEX", help="only functions whose qualified name matches")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--top", type=int, default=10, metavar="N", help="kinds of difference to show (10)")
    parser.add_argument("--list", type=int, default=2, metavar="N", help="examples of each, shortest first (2)")
    parser.add_argument("--show", action="store_true", help="with what differs in the texts")
    parser.add_argument("--floor", type=float, metavar="PERCENT", help="exit status 1 when fewer have the same tree")
    options = parser.parse_args()
    names = [*options.names, *([stdlib_folder()] if options.stdlib else [])]
    if not names:
        parser.error("name a module, a folder, a file or --stdlib")
    selection = Selection(frozenset(["function"]), options.name, options.sample)
    rows = measure_files(find_files(names, tests=False), selection, options.jobs)
    if not rows:
        print("no functions", file=sys.stderr)
        return 2
    report(rows, options.top, options.list, options.show)
    share = 100 * sum(row.outcome == SAME_TREE for row in rows) / len(rows)
    return 1 if options.floor is not None and share < options.floor else 0


if __name__ == "__main__":
    sys.exit(main())
