"""``depyf mcp``: a session of the protocol's own client, and the questions one by one. PyTorch is not needed."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

import pytest

from depyf.cli import main
from depyf.cli.serving import make_server
from depyf.report.model.manifest import from_json
from depyf.running.agent_tools import DumpTools, ProgramTools, ToolError, _kill

LOGS = Path(__file__).resolve().parents[1] / "report" / "logs"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a log, and with what depyf report makes of it."""
    folder = tmp_path_factory.mktemp("dumps")
    shutil.copy(LOGS / "torch_2_13.log.gz", folder / "run.log.gz")
    assert main(["report", str(folder / "run.log.gz"), "-o", str(folder / "page")]) == 0
    return folder


def data(found: object) -> Any:
    """What reaches an agent."""
    return json.loads(json.dumps(found))


def test_the_answers_are_those_of_the_manifest(root: Path) -> None:
    run = from_json((root / "page" / "manifest.json").read_text())
    found = data(DumpTools(str(root)).overview("run.log.gz"))
    assert [each["title"] for each in found["findings"]] == [each.title for each in run.findings]
    assert [each["line"] for each in found["findings"]] == [each.place and each.place[1] for each in run.findings]
    ids = [each for function in found["functions"] for each in function["compile_ids"]]
    assert sorted(ids) == sorted(each.compile_id for each in run.compilations)
    for each in run.recompiles:
        (reason,) = data(DumpTools(str(root)).why("run.log.gz", each.compile_id))["recompiled_because"]
        assert [one["words"] for one in reason["failed"]] == [one.words for one in each.failed]
        assert reason["advice"] == each.advice


def test_a_line_leads_to_kernels_and_back(root: Path) -> None:
    tools = DumpTools(str(LOGS))
    log = "torch_2_13_triton.log.gz"
    found = data(tools.line(log, "record_triton_log.py", 55))
    kernel = next(each for each in found["kernels"] if each["first"])
    lines = data(tools.origin(log, kernel["artifact"], kernel["first"]))["lines"]
    assert 55 in [each["line"] for each in lines]
    part = next(each for each in found["parts"] if each["kind"] == "graph")
    text = data(tools.artifact(log, part["id"]))["text"].splitlines()
    number, _, line = part["text"].splitlines()[0].partition(": ")
    assert text[int(number) - 1] == line


def test_texts_come_in_pages(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = DumpTools(str(root))
    wanted = data(tools.artifacts("run.log.gz"))["artifacts"][0]["id"]
    whole = data(tools.artifact("run.log.gz", wanted))
    assert whole["next"] is None
    monkeypatch.setattr("depyf.running.agent_tools._MOST_LINES", 5)
    text: List[str] = []
    first = 1
    while first:
        page = data(tools.artifact("run.log.gz", wanted, first))
        text += page["text"].splitlines()
        first = page["next"]
    assert text == whole["text"].splitlines()
    assert len(text) == whole["lines"]


@pytest.mark.parametrize(
    ("question", "message"),
    [
        (lambda tools: tools.overview("../elsewhere"), "outside of"),
        (lambda tools: tools.overview("/etc"), "outside of"),
        (lambda tools: tools.overview("a\0b"), "null character"),
        (lambda tools: tools.overview("nothing"), "no such file"),
        (lambda tools: tools.why("run.log.gz", "9/9"), r"there is no compilation 9/9; there are: 0/0"),
        (lambda tools: tools.line("run.log.gz", "other.py", 1), "no file of this run ends with other.py"),
        (lambda tools: tools.artifact("run.log.gz", "none"), "ask `artifacts`"),
        (lambda tools: tools.overview("run.log.gz", "rank 7"), "there is no 'rank 7'"),
    ],
)
def test_a_question_without_an_answer_says_why(root: Path, question: Callable[[DumpTools], Any], message: str) -> None:
    with pytest.raises(ToolError, match=message):
        question(DumpTools(str(root)))


def test_a_link_does_not_lead_outside(root: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(root / "run.log.gz")
    with pytest.raises(ToolError, match="outside of"):
        DumpTools(str(tmp_path)).overview("link")


def _manifest(root: Path) -> Any:
    return json.loads((root / "page" / "manifest.json").read_text())


def _changed(root: Path, folder: Path, **fields: object) -> DumpTools:
    """Return the tools for a copy of the manifest with other fields."""
    folder.mkdir(exist_ok=True)
    (folder / "manifest.json").write_text(json.dumps({**_manifest(root), **fields}))
    return DumpTools(str(folder))


def test_a_form_feed_ends_no_line(root: Path, tmp_path: Path) -> None:
    sources = _manifest(root)["sources"]
    source = next(each for each in sources if each["text"])
    wanted = source["text"].split("\n")[4].strip()
    source["text"] = f"# a page\x0c{source['text']}"
    assert data(_changed(root, tmp_path / "d", sources=sources).line(".", source["path"], 5))["code"] == wanted


def test_a_dump_that_has_changed_within_a_second_is_read(root: Path, tmp_path: Path) -> None:
    tools = _changed(root, tmp_path / "d", notes=["one"])
    path = tmp_path / "d" / "manifest.json"
    os.utime(path, ns=(10**18, 10**18))
    os.utime(path.parent, ns=(10**18, 10**18))
    assert data(tools.overview("."))["notes"] == ["one"]
    path.write_text(path.read_text().replace('["one"]', '["two"]'))
    os.utime(path, ns=(10**18, 10**18 + 1000))
    assert data(tools.overview("."))["notes"] == ["two"]


def test_not_all_dumps_stay_in_memory(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("depyf.running.agent_tools._MOST_KEPT", 2)
    tools = DumpTools(str(tmp_path))
    for number in range(4):
        _changed(root, tmp_path / f"d{number}")
        tools.overview(f"d{number}")
    assert sorted(map(os.path.basename, tools._known)) == ["d2", "d3"]


def test_files_in_hidden_folders_are_found(root: Path, tmp_path: Path) -> None:
    sources = [{"path": "/a/.venv/model.py", "text": "x = 1\n"}, {"path": "/b/a/.venv/model.py", "text": "y = 1\n"}]
    tools = _changed(root, tmp_path / "d", sources=[*_manifest(root)["sources"], *sources])
    assert data(tools.line(".", "b/a/.venv/model.py", 1))["code"] == "y = 1"
    assert data(tools.line(".", "./b/a/.venv/model.py", 1))["code"] == "y = 1"
    assert data(tools.line(".", "/a/.venv/model.py", 1))["code"] == "x = 1", "the exact path is meant"


def _program(path: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> ProgramTools:
    """Return the tools with a shell script in the place of Python."""
    script = path / "python.sh"
    script.write_text(f"#!/bin/sh\n{text}\n")
    script.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(script))
    return ProgramTools(DumpTools(str(path)))


@pytest.mark.skipif(os.name == "nt", reason="shell scripts")
def test_what_an_agent_names_is_no_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = _program(tmp_path, 'printf "%s\\n" "$@" >&2', monkeypatch)
    words = str(tools.check_graph(".", "--no-check")["errors"]).splitlines()
    assert words[words.index("--") + 1 :] == [str(tmp_path), "--no-check"]


@pytest.mark.skipif(os.name == "nt", reason="links need rights")
def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("the program")
    (tmp_path / "extracted_0_0.py").symlink_to(tmp_path / "train.py")
    with pytest.raises(ToolError, match="is a link"):
        ProgramTools(DumpTools(str(tmp_path))).check_graph(".", "0/0")


@pytest.mark.skipif(os.name == "nt", reason="shell scripts")
def test_a_program_is_stopped_with_its_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = _program(tmp_path, "sleep 600 & wait", monkeypatch)
    with pytest.raises(ToolError, match="stopped after"):
        tools.compare("train.py", 0, timeout=0.01)
    command = ["sh", "-c", "sleep 600 & echo started; wait"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"started\n"
        _kill(process)
        assert process.stdout.read() == b"", "the stream is closed only when the child has ended, too"


def test_what_was_written_meanwhile_is_read(root: Path, tmp_path: Path) -> None:
    log = tmp_path / "run.log.gz"
    shutil.copy(root / "run.log.gz", log)
    tools = DumpTools(str(tmp_path))
    before = data(tools.overview("run.log.gz"))["headline"]
    shutil.copy(LOGS / "torch_2_7.log.gz", log)
    assert data(tools.overview("run.log.gz"))["headline"] != before


def _session(root: Path, calls: List[Tuple[str, Dict[str, object]]], **options: Any) -> Tuple[List[str], List[Any]]:
    """Return the tools that a client is offered, and the results of its calls."""
    mcp = pytest.importorskip("mcp")

    async def session() -> Tuple[List[str], List[Any]]:
        async with mcp.Client(options.get("server") or make_server(str(root), programs=False)) as client:
            listed = [each.name for each in (await client.list_tools()).tools]
            return listed, [await client.call_tool(name, arguments) for name, arguments in calls]

    return asyncio.run(session())


def test_a_session_of_a_client(root: Path) -> None:
    names, (overview, why, wrong) = _session(
        root,
        [
            ("overview", {"dump": "run.log.gz"}),
            ("why", {"dump": "run.log.gz", "compile_id": "2/1"}),
            ("overview", {"dump": "/etc"}),
        ],
    )
    assert names == [each.__name__ for each in DumpTools(str(root)).tools()]
    assert json.loads(overview.content[0].text) == data(DumpTools(str(root)).overview("run.log.gz"))
    assert "recompiled_because" in json.loads(why.content[0].text)
    assert wrong.is_error
    assert "outside of" in wrong.content[0].text


def test_names_that_are_not_utf_8_reach_a_client(root: Path, tmp_path: Path) -> None:
    _changed(root, tmp_path / "d", notes=["caf\udce9.py"])
    _, (overview,) = _session(tmp_path, [("overview", {"dump": "d"})])
    assert not overview.is_error
    assert json.loads(overview.content[0].text)["notes"] == ["caf\\udce9.py"]


def test_the_command_speaks_on_its_streams(root: Path) -> None:
    mcp = pytest.importorskip("mcp")
    server = mcp.StdioServerParameters(command=sys.executable, args=["-m", "depyf", "mcp", str(root), "--run"])
    names, (found,) = _session(root, [("overview", {"dump": "run.log.gz"})], server=server)
    assert {"run", "compare", "fix", "check_graph"} < set(names)
    assert not found.is_error
    assert "headline" in found.content[0].text


def test_without_the_package_it_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mcp.server", None)
    assert main(["mcp"]) == 2
    assert "pip install 'depyf[mcp]'" in capsys.readouterr().err
