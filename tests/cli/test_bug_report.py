"""``depyf bug-report``: what is planted in paths, values and the environment is not in the archive."""

from __future__ import annotations

import json
import os
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Dict, Tuple

import pytest
import warm_python

from depyf.cli import bug_reporting, main
from depyf.report.model.manifest import from_json, to_json
from depyf.report.model.run import (
    Artifact,
    Compilation,
    CudaGraphSkip,
    EntryGuard,
    FailedEntryGuard,
    Fallback,
    Finding,
    Function,
    GraphBreak,
    Recompile,
    Run,
    ShapeEvent,
    SourceFile,
)
from depyf.report.render.bug_report import MachineNames, NotScrubbedError
from depyf.report.render.scrubbing import Scrubber, without_literals, without_literals_of_line, without_values

HOME, USER, HOST, TOKEN = "/home/alicia", "alicia", "gpubox17.corp.example", "hf_abcdefgh12345"
SECRETS = (
    "carola",
    "trainer9",
    HOME,
    USER,
    "gpubox17",
    TOKEN,
    "passphrase",
    "a comment of mine",
    "2.71828",
    "bobby",
    "acme",
)

SOURCE = '''KEY = "passphrase of mine"  # a comment of mine
TEXT = """passphrase
in two lines"""
def forward(x):
    """Docstring with passphrase."""
    return x * 4 if KEY == f"passphrase {x!r}" else x
'''

FAILED = FailedEntryGuard("0/0", "KEY == 'passphrase'", "KEY is 'passphrase'", "'passphrase'", "4")

RUN = Run(
    depyf="1",
    torch="2.13",
    command=("python", f"{HOME}/acme/train.py", "--key=passphrase", "passphrase", "--verbose"),
    sources=(
        SourceFile(f"{HOME}/acme/train.py", SOURCE),
        SourceFile(
            "/Users/bobby/x/lib/python3.11/site-packages/torch/nn.py", "def call(): 'torch text'\n", library=True
        ),
    ),
    functions=(Function("forward", "forward", 0, 4, 6),),
    compilations=(
        Compilation(
            "0/0",
            0,
            guards=(
                EntryGuard("EQUALS_MATCH", "L['KEY'] == 'passphrase of mine'"),
                EntryGuard("X", "L['x'] == 2.71828"),
            ),
            metrics={"note": f"{TOKEN} on {HOST}"},
            failure=f"File \"{HOME}/acme/train.py\", ValueError: 'passphrase'",
        ),
        Compilation("0/1", 0),
    ),
    breaks=(GraphBreak("0/0", (0, 5), "print('passphrase')"),),
    recompiles=(
        Recompile(
            "0/1", 0, (FailedEntryGuard("0/0", "KEY == 'passphrase'", "KEY is 'passphrase'", "'passphrase'", "4"),)
        ),
    ),
    fallbacks=(Fallback(0, "0/0", "skipped", f"in {HOME}/acme 'passphrase'"),),
    findings=(Finding("forward broke", f"{USER}@gpubox17 'passphrase'"),),
    notes=(f"written on {HOST} by {USER}", f"with {TOKEN}"),
    artifacts=(
        Artifact("a", "transformed", "t", "0/0", text="x = 'passphrase'  # a comment of mine\n"),
        Artifact(
            "g", "graph", "t", "0/0", text=f"# File: {HOME}/acme/train.py:1 in f, code: a = 'passphrase'\ny = x\n"
        ),
        Artifact("k", "kernels", "t", "0/0", text=f"cpp = '''// {HOME}/cache'''\n"),
        # Made on another machine, by other users.
        Artifact("o", "kernels", "t", "0/0", text="# /tmp/torchinductor_carola/ab/cab.py, carola@trainer9.example\n"),
        Artifact("p", "passes", "t", "0/0", text="from trainer9 by Carola; not 3@4\n"),
        Artifact("n", "note", "t", text="KEY is 'passphrase'"),
    ),
)


@pytest.fixture
def dump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    machine = MachineNames({"HF_TOKEN": TOKEN, "LANG": "C"}, HOME, USER, HOST)
    monkeypatch.setattr(bug_reporting, "_machine", lambda: machine)
    monkeypatch.setattr(bug_reporting, "_script", lambda *_: f"# made by {USER}\n# code: x, code: f('passphrase')\n")
    folder = tmp_path / "dump"
    folder.mkdir()
    (folder / "manifest.json").write_text(to_json(RUN), encoding="utf-8")
    return folder


def report(dump: Path, *options: str) -> Tuple[int, Dict[str, str]]:
    path = dump.parent / "out.zip"
    status = main(["bug-report", str(dump), "-o", str(path), *options])
    with zipfile.ZipFile(path) as archive:
        return status, {name.rpartition("/")[2]: archive.read(name).decode("utf-8") for name in archive.namelist()}


def test_nothing_that_was_planted_is_in_the_archive(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, files = report(dump)
    assert status == 0
    assert sorted(files) == ["README.txt", "index.html", "index.md", "manifest.json", "script.py", "versions.txt"]
    found = [(name, secret) for name, text in files.items() for secret in SECRETS if secret in text.lower()]
    assert found == []
    assert "Left out:" in capsys.readouterr().out


def test_no_text_about_the_run_quotes_values(dump: Path) -> None:
    quoted = "'passphrase' was given"
    run = replace(
        RUN,
        compilations=(replace(RUN.compilations[0], verdict_reason=quoted), RUN.compilations[1]),
        breaks=(GraphBreak("0/0", None, quoted, quoted, (quoted,), advice=quoted),),
        recompiles=(Recompile("0/1", 0, (replace(FAILED, checked=quoted),), quoted),),
        fallbacks=(Fallback(0, "0/0", quoted, quoted, advice=quoted),),
        cudagraph_skips=(CudaGraphSkip("0/0", quoted, advice=quoted),),
        shapes=(ShapeEvent("0/0", "guard", quoted, quoted),),
        artifacts=(
            Artifact("g", "graph", "t", "0/0", text="# File: a.py:1 in f, code: a = f'passphrase {x}'\n"),
            Artifact("h", "graph", "t", "0/0", text="# in g, code: if h:  # passphrase\n"),
        ),
    )
    (dump / "manifest.json").write_text(to_json(run), encoding="utf-8")
    assert [name for name, text in report(dump)[1].items() if "passphrase" in text] == []


def test_what_a_bug_report_needs_stays(dump: Path) -> None:
    files = report(dump)[1]
    run = from_json(files["manifest.json"])
    assert run.sources[0].path == "<program>/train.py"
    assert run.sources[1].path == "<packages>/torch/nn.py"
    text = run.sources[0].text or ""
    assert len(text.splitlines()) == len(SOURCE.splitlines())
    assert text.splitlines()[3] == "def forward(x):"
    assert "return x * 4" in text
    assert run.compilations[0].guards[0].text == "L['KEY'] == <str 1>"
    assert run.recompiles[0].failed[0].now == "<int 4>"
    assert run.command == ("python", "<program>/train.py", "--key=…", "…", "--verbose")
    assert "y = x" in (run.artifacts[1].text or "")


def test_values_stay_on_request_and_names_do_not(dump: Path) -> None:
    files = report(dump, "--with-values")[1]
    assert "passphrase of mine" in files["manifest.json"]
    found = [(name, secret) for name, text in files.items() for secret in SECRETS[:4] if secret in text.lower()]
    assert found == []


def test_the_archive_replaces_nothing(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report(dump)
    assert main(["bug-report", str(dump), "-o", str(dump.parent / "out.zip")]) == 2
    assert "exists already" in capsys.readouterr().err


def test_a_graph_that_is_not_there_stops_the_report(
    dump: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    monkeypatch.undo()
    path = dump.parent / "out.zip"
    assert main(["bug-report", str(dump), "7.Captured_Graph", "-o", str(path)]) == 2
    assert "there are no graph files" in capsys.readouterr().err
    assert not path.exists()
    assert main(["bug-report", str(dump), "-o", str(path)]) == 0  # without a name, one without a script


def test_what_is_left_stops_the_report(
    dump: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Scrubber, "__call__", lambda self, text: text)
    path = dump.parent / "out.zip"
    assert main(["bug-report", str(dump), "-o", str(path)]) == 2
    assert not path.exists()
    assert "nothing is written" in capsys.readouterr().err
    assert issubclass(NotScrubbedError, ValueError)


@pytest.mark.parametrize(
    "environment",
    [
        {"XDG_SESSION_CLASS": "user"},
        {"TOKENIZERS_PARALLELISM": "false"},
        {"PASSWORD": "folder"},
        {"A_KEY": "functions"},
    ],
)
def test_words_of_every_report_do_not_stop_it(
    dump: Path, monkeypatch: pytest.MonkeyPatch, environment: Dict[str, str]
) -> None:
    machine = MachineNames({"HF_TOKEN": TOKEN, **environment}, HOME, "kind", HOST)  # a user with the name of a field
    monkeypatch.setattr(bug_reporting, "_machine", lambda: machine)
    status, files = report(dump)
    assert status == 0
    assert from_json(files["manifest.json"]).functions[0].name == "forward"


@pytest.mark.parametrize(
    ("source", "hidden"),
    [
        ("a = 'x'\n", "a = '…'\n"),
        ("a = b'x'\n", "a = b''\n"),
        ("a = rb'x' + f'{x} y'\n", "a = b'' + '…'\n"),
        ("a = '''x\ny''' + 1\nb\n", "a = '…' + 1\n\nb\n"),
        ("a = 1  # x", "a = 1  # …"),
        ("a = f'''{\n1}'''\nb = 2\n", "a = '…'\n\nb = 2\n"),
        ("no python 'x' # y\n", "no python …\n"),
        ("no python # y\n", "no python …\n"),
        ('no python "x\ny"\nz\n', "…\n…\nz\n"),
        ("no python '''x\ny''' 'z'\n", "…\n…\n"),
        ("x = 1\n\f\ny = 'a'  # b \x1c\x85\nz = 'c\u2028d'\n", "x = 1\n\f\ny = '…'  # …\nz = '…'\n"),
        ("", ""),
    ],
)
def test_literals_are_hidden_and_lines_stay(source: str, hidden: str) -> None:
    assert without_literals(source) == hidden


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("x = f(", "x = f("),
        (").sum()  # a", ").sum()  # …"),
        ('x = d["k"] + foo(', "x = d['…'] + foo("),
        ('x = {"k": 1,', "x = {'…': 1,"),
        ('return"k", foo(  # l', "return'…', foo(  # …"),
        ("h['k'], 'secret')", "h['…'], '…')"),
        ("elif x.sum() > 0:", "elif x.sum() > 0:"),
        ("except E as e:", "except E as e:"),
        ("@torch.compile", "@torch.compile"),
        ("x = a + \\", "x = a + \\"),
        ("x = f'secret {x.sin()}'", "x = '…'"),
        ("my secret {(y := x.sin()) is None}", "…"),  # of a text that goes over several lines
        ("secret''') + x", "…"),
        ("x = '''secret", "…"),
    ],
)
def test_a_line_that_may_be_a_part_of_a_text_is_hidden(line: str, shown: str) -> None:
    assert without_literals_of_line(line) == shown


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("L['x'] == 'secret'", "L['x'] == '…'"),
        ("x is 0.25, and was compiled for 4", "x is …, and was compiled for 4"),
        ('a == "it\'s" and b["k"]', "a == '…' and b[\"k\"]"),
        ("torch 2.13.0", "torch 2.13.0"),
        ("names == ['one', 'two']", "names == ['…', '…']"),
        ("f'of {x}' + rb'raw'", "f'…' + rb'…'"),
        ("'secret': no such user", "'…': no such user"),
        ("{'a': 'x', 'b': ['y']}", "{'a': '…', 'b': ['…']}"),
        ("it isn't 'x'", "it isn't '…'"),
    ],
)
def test_values_are_hidden_and_keys_and_whole_numbers_stay(text: str, hidden: str) -> None:
    assert without_values(text) == hidden


@pytest.mark.torch
def test_of_a_real_dump_the_report_can_be_opened_again(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    home = tmp_path / "home" / "alicia"
    home.mkdir(parents=True)
    (home / "program.py").write_text(
        "import torch, depyf\nKEY = 'passphrase'\n"
        "@torch.compile(backend='eager')\ndef f(x):\n    return x * len(KEY + 'passphrase')  # alicia\n"
        "with depyf.prepare_debug('dump'):\n    f(torch.ones(3))\n"
    )
    source = str(Path(bug_reporting.__file__).parents[2])
    environment = {**os.environ, "HOME": str(home), "LOGNAME": "alicia", "API_KEY": "k3y-in-here", "PYTHONPATH": source}
    for arguments in (["program.py"], ["-m", "depyf", "bug-report", "dump", "-o", "report.zip"]):
        done = warm_python.run([sys.executable, *arguments], cwd=home, env=environment)
        assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(home / "report.zip") as archive:
        texts = {name: archive.read(name).decode() for name in archive.namelist()}
        archive.extractall(tmp_path / "opened")
    for secret in ("alicia", "passphrase", str(home), "k3y-in-here"):
        assert [name for name, text in texts.items() if secret in text] == [], secret
    script = [sys.executable, str(tmp_path / "opened" / "depyf_bug_report" / "script.py"), "--backend", "eager"]
    ran = warm_python.run(script, cwd=tmp_path)
    assert (ran.returncode, "same" in ran.stdout) == (0, True), ran.stdout + ran.stderr
    assert json.loads(texts["depyf_bug_report/manifest.json"])["compilations"]
    assert main(["report", str(tmp_path / "opened" / "depyf_bug_report"), "-o", str(tmp_path / "page")]) == 0


def test_of_a_followed_program_the_script_is_one_of_the_process_that_is_shown(
    dump: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr(bug_reporting, "_script", lambda directory, graph: asked.append(directory) or "")
    (dump / "rank0").mkdir()
    (dump / "manifest.json").rename(dump / "rank0" / "manifest.json")
    assert report(dump)[0] == 0
    assert asked == [str(dump / "rank0")]
