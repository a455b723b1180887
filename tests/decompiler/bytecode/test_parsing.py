"""Trees are made in one place, which is safe beside other threads that make trees (CPython 3.11.0 to 3.11.7)."""

from __future__ import annotations

import ast
import subprocess
import sys
import threading
from pathlib import Path
from typing import List

import pytest

from depyf.decompiler.bytecode import parsing
from depyf.decompiler.bytecode.parsing import parse

PACKAGE = Path(parsing.__file__).resolve().parents[2]

THREADS = """
import ast, gc, sys, threading
from depyf.decompiler.bytecode import parsing
from depyf.decompiler.bytecode.parsing import parse

parsing._PAUSES = 1_000_000  # on a busy machine a thread may be in the middle for longer than 0.2 s

TEXT = "\\n".join(f"def f{i}(x): return (x + {i}) * ([a for a in x if a] if x else {{1: (2, [3])}})" for i in range(60))
gc.set_threshold(200)
failed = []

class Slow:
    def __del__(self):  # the collector runs this while a tree is made, and lets other threads go on
        for _ in range(200):
            pass

def work(parse, times):
    for _ in range(times):
        for _ in range(30):
            slow = Slow()
            slow.itself = slow
        try:
            parse(TEXT)
        except Exception as error:
            failed.append(f"{parse.__module__}: {error!r}")

ours, users = int(sys.argv[1]), ast.parse
threads = [threading.Thread(target=work, args=(parse if ours else users, 12)) for _ in range(4)]
threads.append(threading.Thread(target=work, args=(users, 30)))
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(failed), *sorted(set(failed))[:3])
"""


def failures(ours: bool) -> int:
    command = [sys.executable, "-c", THREADS, str(int(ours))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env={"PYTHONPATH": str(PACKAGE.parent)})
    assert done.returncode == 0, done.stderr
    return int(done.stdout.split()[0])


@pytest.mark.slow
def test_trees_made_in_threads_fail_neither_here_nor_in_the_program() -> None:
    assert failures(ours=True) == 0


@pytest.mark.slow
@pytest.mark.skipif(not parsing.NOT_SAFE, reason="CPython has mended it")
def test_the_stress_does_find_the_error_of_cpython() -> None:
    assert any(failures(ours=False) for _ in range(5))


def test_a_tree_is_what_ast_parse_makes() -> None:
    for text, mode in (("x = 1\ny: int = f(x)\n", "exec"), ("a if b else (yield)", "eval")):
        assert ast.dump(parse(text, mode)) == ast.dump(ast.parse(text, mode=mode))  # type: ignore[call-overload]
    for wrong in ("x = ", "\0", "\ud800"):
        with pytest.raises((SyntaxError, ValueError)) as error:
            ast.parse(wrong)
        with pytest.raises(type(error.value)):
            parse(wrong)


@pytest.mark.skipif(not parsing.NOT_SAFE, reason="ast.parse is another function there, and nothing waits for it")
def test_another_thread_is_waited_for_in_the_middle_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A finalizer that runs in the middle of another thread's ``ast.parse`` stands in frames inside of it."""
    monkeypatch.setattr(parsing, "_PAUSES", 10_000)
    inside, go_on = threading.Event(), threading.Event()
    seen: List[bool] = []

    def in_the_middle() -> None:
        inside.set()
        go_on.wait(30)

    def of_the_program(*_: object) -> None:
        namespace = {"compile": lambda *args, **kwargs: in_the_middle(), "PyCF_ONLY_AST": 0, "isinstance": isinstance}
        exec_in = type(ast.parse)(ast.parse.__code__, namespace, "parse", ast.parse.__defaults__)
        exec_in.__kwdefaults__ = ast.parse.__kwdefaults__
        exec_in("")

    other = threading.Thread(target=of_the_program, daemon=True)
    other.start()
    assert inside.wait(30)
    seen.append(parsing._others_are_parsing())
    ours = threading.Thread(target=lambda: seen.append(parse("x").body != []), daemon=True)
    ours.start()
    ours.join(timeout=0.05)
    assert seen == [True]
    go_on.set()
    other.join(30)
    ours.join(30)
    assert seen == [True, True]
    assert not parsing._others_are_parsing()


def test_nothing_else_makes_trees() -> None:
    made = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and (node.value.id, node.attr) in {("ast", "parse"), ("ast", "PyCF_ONLY_AST")}
    ]
    assert {each.partition(":")[0] for each in made} == {"decompiler/bytecode/parsing.py"}
