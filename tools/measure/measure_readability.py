"""Measure the share of functions whose decompiled source has the syntax tree of the original source.

    python tools/measure/measure_readability.py json textwrap                # modules, folders, files
    python tools/measure/measure_readability.py --stdlib --sample 0.05 -j 2  # a fixed sample of the standard library
    python tools/measure/measure_readability.py json --top 20 --show         # what differs, by kind, with both texts

Every function is decompiled alone, as by ``depyf decompile``, and is one of

    same tree      the trees are the same after ``tests/support/same_source.py``: its rules list what bytecode lacks
    same code      another text that compiles to the same operations in the same order (the verdict ``exact``): they
                   differ only in line numbers
    other text     a decompiler could do better in principle
    no source      refused, or not proved

Two stricter measures are beside it. The *author's text*: the texts are the same after ``ast.unparse``, without what
leaves no trace in a code object (``tests/support/author_text.py``). Differences are reported by class. The *strict
text*: only the indentation of docstrings is made alike, so that ``not a in b``, ``self._C__x`` outside of ``C`` and
what the compiler removed count as differences.

    python tools/measure/measure_readability.py FOLDER ... --statements 6 --count 1000 --seed 1  # a sample, by its text

``depyf sweep`` measures how much is decompiled and proved.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import multiprocessing
import os
import random
import signal
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any, Dict, FrozenSet, Iterator, List, Optional, Tuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "support"))

from author_text import author_text, differences, strict_text
from same_source import Function, canonical_tree

from depyf.decompiler import decompile_code
from depyf.decompiler.errors import DecompilationError
from depyf.decompiler.result import Verdict
from depyf.sweep.pool import Selection
from depyf.sweep.targets import find_files, read_module, stdlib_folder, targets_of

SAME_TREE, SAME_CODE, OTHER_TEXT, NO_SOURCE = "same tree", "same code", "other text", "no source"
SECONDS = 20
"""Of CPU time for one function."""


@dataclass(frozen=True)
class Row:
    """One function. ``author``: it has the author's text; ``strict``: to the letter. ``difference``: the kind of the
    first difference, or the classes of differences from the author's text. ``texts``: both sources in the same
    layout."""

    label: str
    outcome: str
    author: bool = False
    strict: bool = False
    difference: str = ""
    texts: Tuple[str, str] = ("", "")


class TimeLimit(BaseException):
    """Not an ``Exception``, so that no handler in the decompiler catches it."""


# --- the functions to compare


def functions_in(module: ast.Module) -> Iterator[Tuple[Tuple[int, str], Function, Optional[str]]]:
    """Yield every function with the key of its code object, its first line and its name; and the name of its class."""

    def walk(node: ast.AST, owner: Optional[str]) -> Iterator[Tuple[Tuple[int, str], Function, Optional[str]]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                line = min([child.lineno, *(each.lineno for each in child.decorator_list)])
                yield (line, child.name), child, owner
            yield from walk(child, child.name if isinstance(child, ast.ClassDef) else owner)

    return walk(module, None)


def statements_of(function: Function) -> int:
    """Return the number of statements of a function, without nested functions and its docstring."""

    def count(node: ast.AST) -> int:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return 1
        return isinstance(node, ast.stmt) + sum(map(count, ast.iter_child_nodes(node)))

    return sum(map(count, function.body)) - (ast.get_docstring(function) is not None)


Chosen = Optional[FrozenSet[Tuple[int, str]]]
"""The keys of the functions to take from a file; ``None`` for all of them."""


def choose(files: List[str], statements: int, count: Optional[int], seed: int) -> Dict[str, Chosen]:
    """Return the functions of at least ``statements`` statements, or ``count`` of them, selected by ``seed``."""
    if not statements and count is None:
        return dict.fromkeys(files)
    found: List[Tuple[str, Tuple[int, str]]] = []
    for path in files:
        try:
            tree = ast.parse(Path(path).read_bytes())
        except (SyntaxError, ValueError):
            continue
        found += [(path, key) for key, function, _ in functions_in(tree) if statements_of(function) >= statements]
    if count is not None and count < len(found):
        found = random.Random(seed).sample(found, count)
    chosen: Dict[str, List[Tuple[int, str]]] = {}
    for path, key in found:
        chosen.setdefault(path, []).append(key)
    return {path: frozenset(keys) for path, keys in chosen.items()}


def measure_file(path: str, selection: Selection, chosen: Chosen) -> List[Row]:
    try:
        module = read_module(path)
        tree = ast.parse(Path(path).read_bytes())
    except (SyntaxError, ValueError):
        return []  # test data that is not Python
    written: Dict[Tuple[int, str], List[Tuple[Function, Optional[str]]]] = {}
    for key, function, owner in functions_in(tree):
        if chosen is None or key in chosen:
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
            return Row(label, NO_SOURCE, difference=f"not proved: {answer.reason}")
    except (DecompilationError, TimeLimit) as error:
        return Row(label, NO_SOURCE, difference=f"{type(error).__name__}: {error}")
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    # a future import may precede it
    decompiled = next(each for each in answer.tree.body if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)))
    texts = author_text(function, owner), author_text(decompiled)
    left, right = canonical_tree(function, owner), canonical_tree(decompiled, None)
    author, strict = texts[0] == texts[1], strict_text(function) == strict_text(decompiled)
    if ast.dump(left) == ast.dump(right):
        if author:
            return Row(label, SAME_TREE, author, strict)
        return Row(label, SAME_TREE, difference=" + ".join(differences(*texts)), texts=texts)
    outcome = SAME_CODE if answer.verdict is Verdict.EXACT else OTHER_TEXT
    return Row(label, outcome, author, strict, first_difference(left, right), texts)


# --- kinds of difference


def first_difference(left: Any, right: Any, place: str = "") -> str:
    """Describe the first difference of two trees: the node and field, and the value of each."""
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


def _measure_one(task: Tuple[str, Selection, Chosen]) -> List[Row]:
    return measure_file(*task)


def measure_files(files: Dict[str, Chosen], selection: Selection, jobs: int) -> List[Row]:
    tasks = [(path, selection, files[path]) for path in sorted(files, key=os.path.getsize, reverse=True)]
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    with context.Pool(jobs, _start_worker) as pool:
        return [row for rows in pool.imap_unordered(_measure_one, tasks) for row in rows]


def report(rows: List[Row], top: int, examples: int, show: bool) -> None:
    counts = Counter(row.outcome for row in rows)
    for outcome in (SAME_TREE, SAME_CODE, OTHER_TEXT, NO_SOURCE):
        print(f"{outcome:12}{counts[outcome]:8}{100 * counts[outcome] / len(rows):9.2f} %")
    for name, count in (
        ("author text", sum(each.author for each in rows)),
        ("strict text", sum(each.strict for each in rows)),
    ):
        print(f"{name:12}{count:8}{100 * count / len(rows):9.2f} %")
    print(f"{'functions':12}{len(rows):8}   on CPython {sys.version.split()[0]}")
    kinds: Dict[Tuple[str, str], List[Row]] = {}
    for row in rows:
        if not row.author:
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
    parser.add_argument("--statements", type=int, default=0, metavar="N", help="only functions of N statements or more")
    parser.add_argument("--count", type=int, metavar="N", help="N functions, chosen by --seed")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
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
    chosen = choose(find_files(names, tests=False), options.statements, options.count, options.seed)
    rows = measure_files(chosen, selection, options.jobs)
    if not rows:
        print("no functions", file=sys.stderr)
        return 2
    report(rows, options.top, options.list, options.show)
    share = 100 * sum(row.outcome == SAME_TREE for row in rows) / len(rows)
    return 1 if options.floor is not None and share < options.floor else 0


if __name__ == "__main__":
    sys.exit(main())
