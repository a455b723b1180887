"""``depyf run``: a program behaves the same with it as without it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path
from typing import List, Sequence

import pytest
import warm_python
from answer_schema import answer_of

from depyf.cli import main, running
from depyf.report.model.manifest import from_json
from depyf.running.program import own_command

pytestmark = pytest.mark.torch

PROGRAM = """
import atexit, os, pickle, sys, threading, traceback

class Thing:
    pass

def show(*values):
    print(*values, flush=True)

atexit.register(lambda: show("at exit", __name__, sys.modules["__main__"].__dict__ is globals()))
show(__name__, __file__, __package__, __doc__, type(__loader__).__name__, __builtins__.__name__)
show(sys.argv, sys.path[0], os.path.basename(getattr(__spec__, "origin", "none")), getattr(__spec__, "name", None))
show(sorted(name for name in globals() if name.startswith("__")))
show(pickle.loads(pickle.dumps(Thing())).__class__ is Thing, "torch" in sys.modules)
if sys.argv[1:] != ["fork"]:
    threading.Thread(target=lambda: (__import__("time").sleep(0.5), show("thread"))).start()
from concurrent.futures import ThreadPoolExecutor
pool = ThreadPoolExecutor(2)  # its threads end only when the interpreter does
show(pool.submit(len, "abc").result())

def end(how):
    if how == "raise":
        raise ValueError("so it ends")
    if how == "chain":
        try:
            end("raise")
        except ValueError:
            raise KeyError("and so")
    if how == "message":
        sys.exit("with words")
    if how == "status":
        sys.exit(int(sys.argv[2]))
    if how == "interrupt":
        raise KeyboardInterrupt
    if how == "hook":
        sys.excepthook = lambda *found: show("hook", found[0], len(traceback.extract_tb(found[2])))
        raise ValueError
    if how == "hook that exits":
        sys.excepthook = lambda *found: sys.exit(9)
        raise ValueError
    if how == "die":
        os._exit(5)
    if how == "fork":
        if os.fork() == 0:
            show("child")
            sys.exit(3)
        os.wait()
    if how == "hidden":
        exec(compile("1/0", "<made>", "exec"))

end((sys.argv + [""])[1])
show("end")
"""

ENDS = [
    [], ["raise"], ["chain"], ["message"], ["status", "7"], ["status", "0"], ["interrupt"], ["hook"],
    ["hook that exits"], ["die"], ["fork"], ["hidden"], ["-x", "--open", "-o", "--", "-m"],
]  # fmt: skip


def python(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=300, check=False, cwd=str(cwd)
    )


def warm(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """For programs that compile, where it does not matter when PyTorch is imported."""
    return warm_python.run([sys.executable, *arguments], cwd=cwd)


def depyf(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    done = python("-m", "depyf", "run", "-o", "dump", *arguments, cwd=cwd)
    done.stderr = "".join(line for line in done.stderr.splitlines(True) if not line.startswith("depyf: "))
    return done


def same(plain: subprocess.CompletedProcess[str], run: subprocess.CompletedProcess[str]) -> None:
    """Frames of ``runpy``, by which the interpreter runs modules, are not the program's."""
    plain.stderr = re.sub(r'  File "[^"]*runpy[^"]*", line .*\n(?:    .*\n)?', "", plain.stderr)
    assert (run.stdout, run.stderr, run.returncode) == (plain.stdout, plain.stderr, plain.returncode)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "program.py").write_text(PROGRAM)
    package = tmp_path / "package"
    (package / "inner").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text(PROGRAM)
    (package / "module.py").write_text(PROGRAM)
    (package / "inner" / "__init__.py").write_text("")
    return tmp_path


@pytest.mark.parametrize("arguments", ENDS, ids=lambda found: " ".join(found) or "nothing")
def test_a_script_is_the_same_program(arguments: List[str], folder: Path) -> None:
    plain = python("program.py", *arguments, cwd=folder)
    assert plain.stdout
    same(plain, depyf("program.py", *arguments, cwd=folder))


@pytest.mark.parametrize("name", ["package", "package.module", "package.__main__"])
def test_a_module_is_the_same_program(name: str, folder: Path) -> None:
    for arguments in ([], ["raise"], ["-x", "-m"]):
        same(python("-m", name, *arguments, cwd=folder), depyf("-m", name, *arguments, cwd=folder))


def test_modules_beside_the_program_do_not_stand_in_for_others(tmp_path: Path) -> None:
    (tmp_path / "depyf.py").write_text("raise RuntimeError")
    (tmp_path / "argparse.py").write_text("raise RuntimeError")
    done = python(*own_command("depyf.cli")[1:], "--version", cwd=tmp_path)
    assert (done.returncode, done.stdout[:6]) == (0, "depyf "), done.stderr


def test_the_name_of_a_module_may_follow_without_a_space(folder: Path) -> None:
    same(python("-mpackage", "-m", cwd=folder), depyf("-mpackage", "-m", cwd=folder))


def test_folders_and_archives_are_run_by_their_main_module(folder: Path) -> None:
    with zipfile.ZipFile(folder / "archive.zip", "w") as archive:
        archive.writestr("__main__.py", PROGRAM)
    for name in ("package", "archive.zip"):
        same(python(name, "raise", cwd=folder), depyf(name, "raise", cwd=folder))


@pytest.mark.parametrize("text", ["def (:\n", "# -*- coding: latin-1 -*-\nprint(b'\xe9'.decode('latin-1'))\n", "1/0"])
def test_what_is_no_program_ends_as_it_would(text: str, folder: Path) -> None:
    (folder / "broken.py").write_bytes(text.encode("latin-1"))
    same(python("broken.py", cwd=folder), depyf("broken.py", cwd=folder))


@pytest.mark.parametrize("text", ["\0", "x = '\xe9'\n"])
def test_what_the_parser_of_files_words_otherwise_is_an_error_of_syntax_too(text: str, folder: Path) -> None:
    (folder / "broken.py").write_bytes(text.encode("latin-1"))
    for done in (python("broken.py", cwd=folder), depyf("broken.py", cwd=folder)):
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.splitlines()[-1].startswith(("SyntaxError: ", "ValueError: "))  # the latter up to 3.11


def test_a_script_may_be_linked_and_called_from_elsewhere(folder: Path) -> None:
    (folder / "link.py").symlink_to(folder / "package" / "module.py")
    (folder / "there").mkdir()
    name = os.path.join(os.pardir, "link.py")
    same(python(name, cwd=folder / "there"), depyf(name, cwd=folder / "there"))


def test_an_interrupt_kills_as_it_would(folder: Path) -> None:
    assert depyf("program.py", "interrupt", cwd=folder).returncode == -signal.SIGINT


def test_processes_that_a_program_starts_are_as_without_us(folder: Path) -> None:
    (folder / "spawn.py").write_text(
        textwrap.dedent(
            """
            import multiprocessing, os, subprocess, sys

            def work(number):
                return number * 2, __name__, "depyf" in sys.modules, "torch" in sys.modules

            if __name__ == "__main__":
                with multiprocessing.get_context("spawn").Pool(1) as pool:
                    print(pool.map(work, [1, 2]))
                code = "import sys; print(sorted(sys.modules)[:3], 'depyf' in sys.modules)"
                print(subprocess.check_output([sys.executable, "-c", code], text=True))
                print(sorted(name for name in os.environ if "DEPYF" in name or "PYTHON" in name))
            """
        )
    )
    same(python("spawn.py", cwd=folder), depyf("spawn.py", cwd=folder))


def test_a_command_on_the_path_can_be_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = folder / "my-command"
    command.write_text(f"#!{sys.executable}\nimport sys\nprint(sys.argv, sys.path[0])\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    (folder / "there").mkdir()
    plain = subprocess.run(["my-command", "-x"], capture_output=True, text=True, check=True, cwd=folder / "there")
    same(plain, depyf("my-command", "-x", cwd=folder / "there"))


def test_a_program_that_compiles_nothing_leaves_nothing_and_says_so(folder: Path) -> None:
    done = python("-m", "depyf", "run", "-o", "new/dump", "program.py", cwd=folder)
    assert done.stderr == "depyf: nothing was compiled: the program did not use torch.compile\n"
    assert not (folder / "new").exists()
    assert python("-m", "depyf", "run", "-q", "program.py", cwd=folder).stderr == ""


@pytest.mark.parametrize(
    ("text", "words", "status"),
    [
        ("import torch\nimport nosuchmodule\n", "nothing was compiled: the program ended with ModuleNotFoundError: No "
         "module named 'nosuchmodule' (ends.py:2)", 1),
        ("import sys\n\nsys.exit(3)\n", "nothing was compiled: the program ended with sys.exit(3) (ends.py:3)", 3),
        ("x = = 1\n", "nothing was compiled: the program ended with SyntaxError: invalid syntax (ends.py:1)", 1),
        ("import os\nos._exit(4)\n", "the program ended with os._exit(4) (ends.py:2): nothing was compiled before", 4),
        ("import json\n\njson.loads('x')\n", "the program ended with JSONDecodeError: Expecting value: line 1 "
         "column 1 (char 0) (ends.py:3)", 1),
        ("import os\nif os.fork() == 0:\n    os._exit(0)\nos.wait()\n", "nothing was compiled: the program did not "
         "use torch.compile", 0),
    ],
)  # fmt: skip
def test_a_program_that_ends_before_it_compiles_is_said_to_have_ended(
    text: str, words: str, status: int, folder: Path
) -> None:
    (folder / "ends.py").write_text(text)
    done = python("-m", "depyf", "run", "ends.py", cwd=folder)
    last = done.stderr.splitlines()[-1]
    assert last.startswith("depyf: ")
    assert words in last
    assert done.returncode == status
    plain = python("ends.py", cwd=folder)
    assert done.stderr[: done.stderr.rindex("depyf: ")] == plain.stderr


def test_a_page_that_was_there_is_not_that_of_a_program_that_compiles_nothing(folder: Path) -> None:
    (folder / "dump").mkdir()
    page = folder / "dump" / "index.html"
    page.write_text("old")
    done = python("-m", "depyf", "run", "-o", "dump", "program.py", cwd=folder)
    assert done.stderr.splitlines()[-1] == f"depyf: {page} is of an earlier run"
    assert page.read_text() == "old"


COMPILES = """
import os, sys
os.environ["TORCH_COMPILE_THREADS"] = "1"
print("depyf.dynamo.capture.hub" in sys.modules)
import torch
print("torch._dynamo" in sys.modules)

@torch.compile(backend="eager")
def double(x, n):
    y = x * n
    print("breaks here")
    return y + 1

for number in (2, 3):
    double(torch.ones(3), number)
sys.exit(4)
"""


def test_what_is_compiled_is_dumped_and_summed_up(folder: Path) -> None:
    (folder / "compiles.py").write_text(COMPILES)
    plain = python("compiles.py", cwd=folder)
    done = python("-m", "depyf", "run", "compiles.py", cwd=folder)
    assert (done.stdout, done.returncode) == (plain.stdout, 4)
    names = os.listdir(folder / "depyf_compiles")
    assert {"full_code_for_double_0.py", "index.html", "index.md", "manifest.json"} <= set(names)
    said = re.sub(r"[\d.]+ s$", "- s", done.stderr, flags=re.MULTILINE)
    for line in (
        "depyf: functions compiled      1 and 1 resume function, in 3 compilations",
        "depyf: graphs                  3",
        "depyf: graph breaks            1 (compiles.py:11), met in 2 compilations",
        "depyf: recompilations          1 (double)",
        "depyf: fallbacks to eager      0",
        "depyf: kernels                 0",
        "depyf: compile time            - s",
        f"depyf: the page                {folder / 'depyf_compiles' / 'index.html'}",
    ):
        assert line in said.splitlines(), said


def test_the_page_is_opened_at_its_story(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    browser = folder / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > "{folder}/address"\n')
    browser.chmod(0o755)
    monkeypatch.setenv("BROWSER", f"{browser} %s")
    (folder / "compiles.py").write_text(COMPILES)
    done = warm("-m", "depyf", "run", "--story", "-o", "dump", "compiles.py", cwd=folder)
    address = f"{(folder / 'dump' / 'index.html').as_uri()}#story"
    assert done.stderr.splitlines()[-1] == f"depyf: the page at story: {address}"
    assert (folder / "address").read_text().strip() == address
    assert done.returncode == 4


OF_A_RANK = """
import os, time
import torch

@torch.compile(backend="eager")
def double(x):
    y = x * 2
    if os.environ["RANK"] == "1":
        torch._dynamo.graph_break()
    return y + 1

deadline = time.monotonic() + 200
while os.environ["RANK"] == os.environ.get("LATE") and not os.path.exists("other_has_ended"):
    assert time.monotonic() < deadline
    time.sleep(0.05)
double(torch.ones(3))
"""


@pytest.mark.parametrize("late", ["0", "1"])
def test_a_rank_that_ends_before_the_other_writes_keeps_its_files(folder: Path, late: str) -> None:
    (folder / "ranks.py").write_text(OF_A_RANK)
    command = [sys.executable, "-m", "depyf", "run", "-o", "dump", "ranks.py"]
    started = [
        subprocess.Popen(
            command,
            cwd=folder,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "RANK": rank, "WORLD_SIZE": "2", "LATE": late},
        )
        for rank in ("0", "1")
    ]
    first, last = started if late == "1" else reversed(started)
    first.communicate(timeout=300)
    left = {path.name: path.read_bytes() for path in (folder / "dump").iterdir() if path.is_file()}
    (folder / "other_has_ended").touch()
    said = last.communicate(timeout=300)[1]
    assert [each.returncode for each in started] == [0, 0]
    replaced = {name for name in left if (folder / "dump" / name).read_bytes() != left[name]}
    assert replaced <= {"index.html", "index.md"}  # by those of all ranks
    assert said.splitlines()[-1].endswith("index.html (ranks 0, 1)"), said
    ranks = {json.loads(path.read_text())["rank"] for path in (folder / "dump").glob("manifest*.json")}
    assert ranks == {0, 1}


def test_ranks_are_named_and_speak_one_after_the_other(folder: Path) -> None:
    (folder / "ranks.py").write_text(OF_A_RANK)
    command = [sys.executable, "-m", "depyf", "run", "-o", "dump", "ranks.py"]
    with open(folder / "said.txt", "w") as said:
        started = [
            subprocess.Popen(command, cwd=folder, stderr=said, env={**os.environ, "RANK": rank, "WORLD_SIZE": "2"})
            for rank in ("0", "1")
        ]
        assert [each.wait(timeout=300) for each in started] == [0, 0]
    said_lines = (folder / "said.txt").read_text().splitlines()
    lines = [line for line in said_lines if line.startswith("depyf") and "]: compiling " not in line]
    ranks = [re.match(r"depyf \[rank (\d)\]: ", line) for line in lines]
    assert all(ranks)
    order = [rank.group(1) for rank in ranks if rank]
    assert set(order) == {"0", "1"}
    assert order in (sorted(order), sorted(order, reverse=True))
    pages = [line for line in lines if "the page" in line]
    # The other may have ended when the first speaks.
    assert pages[0].endswith(
        (f"(rank {order[0]}; the rank that ends last writes the page of all)", "index.html (ranks 0, 1)")
    )
    assert pages[1].endswith("index.html (ranks 0, 1)")
    assert any(line.startswith(f"depyf [rank {order[-1]}]: ! Graph break on rank 1 only (") for line in lines)
    assert lines[0] in (
        "depyf [rank 0]: 1 function compiled as 1 graph, without graph breaks or recompilations",
        "depyf [rank 1]: 1 function compiled as 2 graphs, 1 graph break",
    )


def test_what_lies_in_the_directory_is_neither_taken_for_this_run_nor_lost(folder: Path) -> None:
    (folder / "compiles.py").write_text(COMPILES)
    dump = folder / "dump"
    dump.mkdir()
    own = {"index.html": "<h1>mine</h1>", "index.md": "# mine", "manifest.json": '{"name":"my web app"}'}
    own["manifest.process_1.json"] = '{"schema":1,"started":1000.5,"command":["python","old.py"]}'
    for name, text in own.items():
        (dump / name).write_text(text)
    for _ in range(2):
        done = warm("-m", "depyf", "run", "-o", "dump", "compiles.py", cwd=folder)
        assert f"depyf: the page                {dump / 'depyf_index.html'}" in done.stderr.splitlines()
    assert {name: (dump / name).read_text() for name in own} == own
    page = (dump / "depyf_index.html").read_text()
    assert "compiles.py" in page
    assert "old.py" not in page
    assert "process 1" not in page
    assert {"depyf_index.md", "manifest.depyf.json"} <= set(os.listdir(dump))
    assert "depyf_index_2.html" not in os.listdir(dump)


def test_a_damaged_manifest_of_an_earlier_run_does_not_hide_the_summary(folder: Path) -> None:
    (folder / "compiles.py").write_text(COMPILES)
    damaged = folder / "dump" / "manifest.rank_3.json"
    damaged.parent.mkdir()
    damaged.write_text('{"schema":1,"compilations":[{"compile_id":"0/0","function":9}]}')
    done = warm("-m", "depyf", "run", "-o", "dump", "compiles.py", cwd=folder)
    said = done.stderr.splitlines()
    assert "depyf: graphs                  3" in said
    assert f"depyf: the page                {folder / 'dump' / 'index.html'}" in said
    assert f"depyf: ! left out: {damaged}: a damaged manifest (there is no function 9)" in said
    for name in ("index.html", "index.md"):
        assert damaged.name in (damaged.parent / name).read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing.py"], "nothing.py: there is no such script\n"),
        (["nothing"], "there is no such script, and no such command on PATH (a module: -m nothing)"),
        (["-m", "no_such_module"], "no module named no_such_module"),
        (["-m", "package.nothing"], "no module named package.nothing"),
        (["-m", "package.inner"], "package.inner is a package that can't be run directly"),
        (["-m", "sys"], "only modules written in Python can be run"),
        (["folder"], "there is no __main__ module in it"),
        (["-o", "program.py/x", "program.py"], "no directory can be made there"),
        ([], "name a script, or a module with -m"),
        (["-m"], "name a script, or a module with -m"),
    ],
)
def test_what_cannot_be_run_is_said(arguments: Sequence[str], words: str, folder: Path) -> None:
    (folder / "folder").mkdir()
    done = python("-m", "depyf", "run", *arguments, cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert not [name for name in os.listdir(folder) if name.startswith("depyf_")]


@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_cannot_be_written_is_said_before_anything_runs(folder: Path) -> None:
    (folder / "closed").mkdir(mode=0o500)
    done = python("-m", "depyf", "run", "-o", "closed", "program.py", cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert "can't be written" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "own", "program"),
    [
        (["run", "a.py", "-o", "x"], ["run"], ["a.py", "-o", "x"]),
        (["run", "-o", "d", "-q", "a.py", "-q"], ["run", "-o", "d", "-q"], ["a.py", "-q"]),
        (["run", "--output=d", "-m", "pytest", "-m", "slow"], ["run", "--output=d", "-m"], ["pytest", "-m", "slow"]),
        (["run", "-mpytest", "-q"], ["run", "-m"], ["pytest", "-q"]),
        (["run", "-o", "-m", "a.py"], ["run", "-o", "-m"], ["a.py"]),
        (["diff", "-m", "a"], ["diff", "-m", "a"], []),
    ],
)
def test_the_arguments_of_the_program_are_its_own(arguments: List[str], own: List[str], program: List[str]) -> None:
    assert running.split(arguments) == (own, program)


@pytest.mark.parametrize("closed", ["2>&-", ">&-", ">&- 2>&-"])
def test_closed_streams_change_nothing(tmp_path: Path, closed: str) -> None:
    (tmp_path / "program.py").write_text("import os, sys\nopen('ran', 'w').close()\nsys.exit(3)\n")
    command = f'"{sys.executable}" -m depyf run program.py {closed}'
    environment = {**os.environ, "PYTHONPATH": str(Path(running.__file__).parents[2])}
    done = subprocess.run(
        command, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 3
    assert (tmp_path / "ran").exists()
    assert "Traceback" not in done.stderr


IMPORTS_TORCH = "import torch\nprint('imported', torch.ones(1).item())\nimport torch._dynamo\nprint('still here')\n"


def test_a_watched_program_can_be_run_too(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(IMPORTS_TORCH)
    begin = (
        "import depyf.running.by_environment as e; e.begin()\nfrom depyf.cli import main; main(['run', 'program.py'])"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(running.__file__).parents[2]), "DEPYF_WATCH": "1"}
    command = [sys.executable, "-c", begin]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "imported 1.0\nstill here\n"


def test_what_fails_when_the_compiler_is_imported_stays_out_of_the_import(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch._dynamo")
    from depyf.running.torch_import import when_compiler_is_imported

    def fail() -> None:
        raise ZeroDivisionError("injected")

    when_compiler_is_imported(fail)
    assert "ZeroDivisionError: injected" in capsys.readouterr().err


@pytest.mark.slow
def test_the_first_value_that_is_not_finite_is_found(tmp_path: Path) -> None:
    program = """
    import torch

    @torch.compile(backend="aot_eager")
    def loss(x):
        return torch.log(x).sum()

    print(loss(torch.tensor([-1.0, 1.0])).item())
    """
    (tmp_path / "program.py").write_text(textwrap.dedent(program))
    done = warm("-m", "depyf", "run", "-o", "dump", "--find-nonfinite", "program.py", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "nan\n"), done.stderr
    assert done.stderr.count("NaN first made by aten.log.default in the forward") == 2  # then, and in the summary
    assert "program.py:6: return torch.log(x).sum()" in done.stderr
    assert "aten.log.default" in (tmp_path / "dump" / "nonfinite_0" / "finding.txt").read_text()
    assert list((tmp_path / "dump").glob("full_code_for_loss_*.py"))
    again = warm(str(tmp_path / "dump" / "nonfinite_0" / "replay.py"), cwd=tmp_path)
    assert (again.returncode, "1 values are not finite" in again.stdout) == (0, True)
    (tmp_path / "program.py").write_text(textwrap.dedent(program).replace("-1.0", "1.0"))
    done = warm("-m", "depyf", "run", "-o", "other", "--find-nonfinite", "program.py", cwd=tmp_path)
    assert "no value that is not finite was made" in done.stderr


STALE = """
import torch

class Box:
    pass

box = Box()
box.a = box.now = object()

@torch.compile(backend="eager")
def function(x):
    return x + 1 if box.now is box.a else x - 1

function(torch.ones(2))
box.now = object()
print(function(torch.ones(2)).tolist())
"""
FOUND = "stale function [0/0] program.py:12: box.now was box.a, is <object at 0x"


def test_compiled_code_is_checked_while_a_program_runs(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(STALE)
    done = warm("-m", "depyf", "run", "-q", "-o", "dump", "--shadow=1", "program.py", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "[2.0, 2.0]\n"), done.stderr
    assert done.stderr.startswith(f"depyf: shadow: {FOUND}")
    assert "calls of compiled functions checked" not in done.stderr


@pytest.mark.parametrize("number", ["x", "0", "-1"])
def test_a_number_of_calls_that_makes_no_sense_is_refused(number: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["run", f"--shadow={number}", "program.py"])
    assert ended.value.code == 2
    assert "is no number of calls" in capsys.readouterr().err


@pytest.mark.slow
def test_without_stepping_a_traceback_has_the_lines_of_the_program(tmp_path: Path) -> None:
    program = """
    import torch

    @torch._dynamo.disable
    def fail(x):
        raise ValueError("boom")

    @torch.compile(backend="eager")
    def step(x):
        return fail(x + 1)

    step(torch.ones(3))
    """
    (tmp_path / "program.py").write_text(textwrap.dedent(program))
    without = warm("program.py", cwd=tmp_path)
    assert "__transformed_code_" in warm("-m", "depyf", "run", "-q", "program.py", cwd=tmp_path).stderr
    done = warm("-m", "depyf", "run", "-q", "--no-stepping", "-o", "dump", "program.py", cwd=tmp_path)
    assert 'program.py", line 10, in step' in without.stderr
    assert (done.returncode, done.stderr) == (1, without.stderr)
    assert (tmp_path / "dump" / "__transformed_code_0_for_step.py").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="file names are bytes on Linux")
def test_the_page_of_a_directory_that_is_no_utf8_is_named_where_it_stays(tmp_path: Path) -> None:
    program, dump = tmp_path / "p.py", os.fsencode(tmp_path / "d") + b"\xff"
    program.write_text(
        "import torch\n@torch.compile(backend='eager')\ndef f(x):\n    return x + 1\nprint(f(torch.ones(1)).item())\n"
    )
    command: List[bytes] = [*map(os.fsencode, (sys.executable, "-m", "depyf", "run", "-o")), dump, os.fsencode(program)]
    done = subprocess.run(command, capture_output=True, check=True)
    assert done.stdout == b"2.0\n"
    (page,) = (line for line in done.stderr.splitlines() if b"the page" in line)
    assert page.split()[-1] == os.fsencode(tmp_path / "d") + b"\\udcff/index.html"
    assert os.path.exists(dump + b"/index.html")


TRAINING = """
import torch

@torch.compile(backend="aot_eager")
def f(w, x):
    return (x @ w).sin().sum()

w = torch.randn(8, 8, requires_grad=True)
for _ in range(16):
    f(w, torch.randn(4, 8)).backward()
print("done")
"""


@pytest.mark.torch
def test_steps_of_a_program_are_profiled(tmp_path: Path) -> None:
    pytest.importorskip("torch", minversion="2.13")
    (tmp_path / "program.py").write_text(TRAINING)
    done = warm("-m", "depyf", "run", "-o", "dump", "--profile", "--json", "p.json", "program.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "done\n"
    assert "depyf profiled the block: 5 calls" in done.stderr
    assert "return (x @ w).sin().sum()" in done.stderr
    ran = answer_of((tmp_path / "p.json").read_text(), "run")
    assert ran["run"]["counts"]["graphs"] == 1
    assert ran["trace"] is None
    found = ran["profile"]
    assert found["steps"] == 5
    assert found["attributed"] > 0.9
    assert len(found["times"]) >= 6, "steps are timed after the profiled ones"
    (timing,) = from_json((tmp_path / "dump" / "manifest.json").read_text()).timings
    assert timing.steps == 5, "the page shows what was measured"


@pytest.mark.torch
@pytest.mark.slow
def test_a_program_without_steps_says_so(tmp_path: Path) -> None:
    pytest.importorskip("torch", minversion="2.13")
    (tmp_path / "program.py").write_text("import torch\ntorch.compile(torch.sin, backend='eager')(torch.ones(2))\n")
    done = warm("-m", "depyf", "worth", "program.py", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "the program has too few steps: 0 were timed" in done.stderr


@pytest.mark.torch
@pytest.mark.slow
def test_worth_says_three_sentences(tmp_path: Path) -> None:
    pytest.importorskip("torch", minversion="2.13")
    (tmp_path / "program.py").write_text(TRAINING)
    done = warm("-m", "depyf", "worth", "program.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    first, second, third = done.stdout.replace("done\n", "").splitlines()
    assert "a compiled call takes" in first
    assert second.startswith("Compiling took ")
    assert third.startswith("Guards and the calls of graphs take ")
