"""``depyf report``: a page from earlier dumps and logs, without PyTorch."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Iterator, Optional, Tuple

import pytest

from depyf.cli import main
from depyf.cli.reporting import _state
from depyf.report.model.manifest import from_json
from depyf.report.model.run import Run
from depyf.report.read.reading import Loaded, load, of_the_same_launch

LOGS = Path(__file__).resolve().parent.parent / "report" / "logs"


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> Tuple[int, str, str]:
    status = main([str(argument) for argument in arguments])
    printed = capsys.readouterr()
    return status, printed.out, printed.err


def text_of_log() -> str:
    import gzip

    return gzip.decompress((LOGS / "torch_2_13.log.gz").read_bytes()).decode()


def facts(found: Run) -> dict[str, object]:
    def line(place: object) -> object:
        return place[1] if isinstance(place, tuple) else None

    return {
        "compilations": [each.compile_id for each in found.compilations],
        "functions": [function.name for function in found.functions],
        "breaks": [(each.compile_id, line(each.place)) for each in found.breaks],
        "recompiles": [(each.compile_id, [failed.entry for failed in each.failed]) for each in found.recompiles],
        "kernels": len(found.kernels),
    }


RESUMED = "torch_dynamo_resume_in_loss_at_14"

# As tlparse 0.4.3 shows them (tools/check/compare_with_tlparse.py).
EXPECTED = {
    "2_7": {
        "compilations": ["0/0", "1/0", "2/0", "2/1", "2/2"],
        "functions": ["loss", RESUMED, "scaled"],
        "breaks": [("0/0", 14)],
        "recompiles": [("2/1", ["2/0"]), ("2/2", ["2/1", "2/0"])],
        "kernels": 3,
    },
    "2_13": {
        "compilations": ["0/0", "1/0", "2/0", "2/1"],
        "functions": ["loss", RESUMED, "scaled"],
        "breaks": [("0/0", 14)],
        "recompiles": [("2/1", ["2/0"])],
        "kernels": 2,
    },
}
EXPECTED["2_15"] = EXPECTED["2_13"]


@pytest.mark.parametrize("version", list(EXPECTED))
def test_a_log_of_any_pytorch_becomes_a_page(version: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    status, printed, _ = run(capsys, "report", LOGS / f"torch_{version}.log.gz", "-o", out)
    assert status == 0
    assert "graph breaks            1 (traced.py:14)" in printed
    found = from_json((out / "manifest.json").read_text())
    assert facts(found) == EXPECTED[version]
    assert found.origin == "torch_trace"
    page = (out / "index.html").read_text()
    assert "Failed to trace builtin operator" in page
    assert "cpp_fused" in page  # texts are in the page: a log has no files


def test_source_that_is_not_here_is_shown_as_far_as_the_log_quotes_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = text_of_log()
    log = tmp_path / "elsewhere.log"
    log.write_text(text.replace("/tmp/logs_work/", "/no/such/folder/"))
    status, printed, _ = run(capsys, "report", log, "-o", tmp_path / "page.html")
    assert status == 0
    assert (
        "source files that are missing, or have changed since the log was recorded: /no/such/folder/traced.py"
        in printed
    )
    source = from_json((tmp_path / "manifest.json").read_text()).sources[0]
    assert (source.text or "").splitlines()[12:14] == ["y = torch.sin(x) * scale", 'print("between two graphs")']


@pytest.mark.parametrize("phases", [True, False])
@pytest.mark.parametrize("ends", [True, False])
def test_a_log_that_ends_in_a_compilation_says_so(
    ends: bool, phases: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = text_of_log()
    end = len(text) if ends else text.rindex("\n", 0, text.index('{"compilation_metrics"')) + 1
    log = tmp_path / "some.log"
    log.write_text(text[:end] if phases else text[:end].replace('{"chromium_event"', '{"other_event"'))
    status, printed, _ = run(capsys, "report", log, "-o", tmp_path / "page.html")
    assert status == 0
    assert ("the log does not have the end of compile id " in printed) is not ends
    assert ("compile time            not known" in printed) is not ends


def test_a_log_of_a_pytorch_that_logs_no_ends_does_not_say_that_one_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = text_of_log()
    log = tmp_path / "some.log"
    log.write_text(text.replace('{"compilation_metrics"', '{"other_metrics"'))
    _, printed, _ = run(capsys, "report", log, "-o", tmp_path / "page.html")
    assert "does not have the end" not in printed


def test_two_ranks_give_one_page_that_says_where_they_part(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, printed, _ = run(capsys, "report", LOGS / "ranks", "-o", tmp_path)
    assert status == 0
    apart = [line for line in printed.splitlines() if line.startswith("! ")]
    assert apart == [
        "! Graph break on rank 1 only (traced_ranks.py:28)",
        "! shared was recompiled on rank 1 only",
        "! uneven gave another graph",
    ]
    assert {path.name for path in tmp_path.iterdir()} >= {"index.html", "manifest.rank_0.json", "manifest.rank_1.json"}
    page = (tmp_path / "index.html").read_text()
    assert "shared was recompiled on rank 1 only" in page


def test_ranks_may_come_from_several_paths(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs = sorted((LOGS / "ranks").iterdir(), reverse=True)
    status, printed, _ = run(capsys, "report", *logs, "-o", tmp_path)
    assert status == 0
    assert [line for line in printed.splitlines() if line.startswith("rank")] == ["rank 0:", "rank 1:"]


DUMP = {
    "__compiled_fn_1.Captured_Graph.0.py": "# Captured_Graph of __compiled_fn_1, compile id 0/0\n"
    "# This file is what runs: a breakpoint in it stops.\nimport torch\n\n\n"
    "class GraphModule(torch.nn.Module):\n    def forward(self, x):\n        return (x,)\n",
    "__transformed_code_0_for_f.py": "def __transformed_code_0_for_f(x):\n"
    "    return __resume_at_8_2(__compiled_fn_1(x)[0])\n\n\n"
    "# from f (prog.py:3), compile id 0/0\n# equivalent: proved to be the same\n",
    "__transformed_code_0_for_torch_dynamo_resume_in_f_at_5.py": "def __transformed_code_0_for_r(x):\n"
    "    return x\n\n\n# from torch_dynamo_resume_in_f_at_5 (prog.py:5), compile id 1/0\n# exact\n",
    "full_code_for_f_0.py": "x = 1\n",
    "eager_fallbacks_0.txt": "nothing\n",
    "something_else.py": "y = 1\n",
}


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    folder = tmp_path / "dump"
    folder.mkdir()
    for name, text in DUMP.items():
        (folder / name).write_text(text)
    return folder


def test_a_dump_without_a_manifest_is_read_by_its_files(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, printed, _ = run(capsys, "report", dump, "-o", dump.parent / "out")
    assert status == 0
    assert "not known: there is no manifest" in printed
    assert "note: made from the files alone" in printed
    index = (dump.parent / "out" / "index.md").read_text()
    for what in ("graph breaks", "recompilations", "fallbacks to eager", "guards", "compile time"):
        assert f"| {what} | not known |" in index
    assert "| graphs | 1 |" in index
    assert "| 0/0 | the function | compiled |  |  |" in index
    found = from_json((dump.parent / "out" / "manifest.json").read_text())
    assert {artifact.title for artifact in found.artifacts} == set(DUMP) - {"something_else.py"}
    compilation, resumed = found.compilations
    assert (compilation.compile_id, compilation.graph, compilation.verdict) == ("0/0", "__compiled_fn_1", "equivalent")
    assert [(call.graph, call.function) for call in compilation.calls] == [
        ("__compiled_fn_1", None),
        (None, resumed.function),
    ]
    assert found.functions[resumed.function or 0].resumes == compilation.function
    assert found.functions[0].full_code == "full_code_for_f_0.py"


def test_what_watch_writes_is_no_change(
    dump: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    naps = []

    def nap(seconds: float) -> None:
        naps.append(seconds)
        if len(naps) > 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("depyf.cli.reporting.time.sleep", nap)
    more = ["--perfetto", str(dump / "trace.json"), "--flow", str(dump / "flow.svg"), "--output", str(dump)]
    status, out, _ = run(capsys, "report", dump, *more, "--watch")
    assert status == 130
    assert out.count("the page") <= 2  # the manifest of a dump that had none is read the next time


def test_a_page_that_is_not_finished_does_not_replace_the_one_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> Iterator[object]:
        raise KeyboardInterrupt

    page, link = tmp_path / "page.html", tmp_path / "link.html"
    command = ("report", LOGS / "torch_2_13.log.gz", "-o", link)
    assert run(capsys, *command)[0] == 0
    link.rename(page)
    link.symlink_to(page)
    assert run(capsys, *command)[0] == 0
    assert link.is_symlink()
    whole, files = page.read_text(), sorted(tmp_path.iterdir())
    monkeypatch.setattr("depyf.report.render.page_data._links", interrupted)
    assert run(capsys, *command)[0] == 130
    assert page.read_text() == whole
    assert sorted(tmp_path.iterdir()) == files


def test_a_dump_of_the_original_depyf_is_shown_without_compilations(
    dump: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in dump.iterdir():
        lines = path.read_text().splitlines(True)
        path.write_text("".join(line for line in lines if not line.startswith("#")))
    status, printed, _ = run(capsys, "report", dump)
    assert (status, printed.splitlines()[0]) == (
        0,
        "5 files of a dump that do not say which compilations they belong to",
    )
    assert "return (x,)" in (dump / "index.html").read_text()


def test_logs_are_read_again_where_their_page_was_written_beside_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = sorted((LOGS / "ranks").iterdir())
    shutil.copy(first, tmp_path)
    assert run(capsys, "report", tmp_path, "-o", tmp_path)[0] == 0
    before = _state([str(tmp_path)], ())
    shutil.copy(second, tmp_path)
    assert _state([str(tmp_path)], ()) != before
    before = _state([str(tmp_path)], ())
    _, printed, _ = run(capsys, "report", tmp_path, "-o", tmp_path)
    assert "! shared was recompiled on rank 1 only" in printed
    assert (tmp_path / "manifest.rank_1.json").exists()
    assert _state([str(tmp_path)], ()) == before, "what a report writes is not a reason to write another"


def test_files_of_several_ranks_in_one_dump_are_told_apart(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in list(DUMP)[:2]:
        shutil.copy(dump / name, dump / name.replace(".py", ".rank_1.py"))
    status, printed, _ = run(capsys, "report", dump)
    assert status == 0
    assert [line for line in printed.splitlines() if line.endswith(":")] == ["rank 0:", "rank 1:"]
    assert (dump / "index.html").exists()


def test_a_manifest_is_read_with_the_files_beside_it(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "report", dump)
    first = (dump / "index.html").read_text()
    assert "return (x,)" not in (dump / "manifest.json").read_text()  # it stands in its file
    (dump / "full_code_for_f_0.py").unlink()  # the manifest counts now
    status, printed, _ = run(capsys, "report", dump)
    assert status == 0
    assert "functions compiled      1 and 1 resume function, in 2 compilations" in printed
    second = (dump / "index.html").read_text()
    assert "return (x,)" in first
    assert "return (x,)" in second
    assert "full_code_for_f_0.py" in second


def test_a_manifest_away_from_the_files_holds_their_texts(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "report", dump, "-o", dump.parent / "out")
    shutil.rmtree(dump)
    (dump.parent / "out" / "index.html").unlink()
    assert run(capsys, "report", dump.parent / "out" / "manifest.json")[0] == 0
    assert "return (x,)" in (dump.parent / "out" / "index.html").read_text()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda folder: folder / "nothing", "there is no such file or directory"),
        (lambda folder: folder, "nothing that depyf reads"),
        (lambda folder: _written(folder / "manifest.json", "[]"), "not a manifest of depyf"),
        (
            lambda folder: _written(
                folder / "manifest.json", '{"schema":1,"compilations":[{"compile_id":"0/0","function":9}]}'
            ),
            "damaged manifest (there is no function 9)",
        ),
        (lambda folder: _written(folder / "a.log", "no\n"), "nothing that depyf reads"),
        (lambda folder: _written(folder / "manifest.json", json.dumps({"schema": 1000})), "update depyf"),
    ],
)
def test_what_cannot_be_read_is_said_in_one_line(
    make: object, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert callable(make)
    status, out, err = run(capsys, "report", make(tmp_path))
    assert (status, out, len(err.splitlines())) == (2, "", 1)
    assert words in err


def _written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


FOREIGN = ["{}", '{"name":"my web app","icons":[]}', "\xe9 no JSON"]


@pytest.mark.parametrize("text", FOREIGN)
def test_a_manifest_of_something_else_does_not_hide_what_lies_beside_it(
    text: str, dump: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = dump.parent / "out"
    (dump / "manifest.json").write_bytes(text.encode("latin-1"))
    status, printed, _ = run(capsys, "report", dump, "-o", out)
    assert (status, "note: made from the files alone" in printed) == (0, True)
    logs = dump.parent / "logs"
    logs.mkdir()
    shutil.copy(LOGS / "torch_2_13.log.gz", logs)
    _written(logs / "manifest.json", "{}")
    status, printed, _ = run(capsys, "report", logs, "-o", out)
    assert (status, "graph breaks            1 (traced.py:14)" in printed) == (0, True)
    (logs / "torch_2_13.log.gz").unlink()
    assert run(capsys, "report", logs)[0] == 2


DAMAGED = {
    "refers to nothing": '{"schema":1,"compilations":[{"compile_id":"0/0","function":9}]}',
    "cut off": '{"schema":1,"compilations":[{"compile_id":"0/',
    "newer": '{"schema":1000}',
    "can not be read": None,
}


@pytest.mark.parametrize("damage", list(DAMAGED))
def test_a_damaged_manifest_costs_its_own_run_only_and_is_named(
    damage: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(capsys, "report", LOGS / "torch_2_13.log.gz", "-o", tmp_path)
    text, damaged = DAMAGED[damage], tmp_path / "manifest.rank_1.json"
    if text is None:
        damaged.symlink_to("/proc/self/mem")  # a file that can be opened and not be read
    else:
        damaged.write_text(text)
    status, printed, _ = run(capsys, "report", tmp_path)
    assert (status, "graph breaks            1 (traced.py:14)" in printed) == (0, True)
    assert f"note: left out: {damaged}" in printed or (text is None and "note: left out: " in printed)
    for name in ("index.html", "index.md"):
        assert damaged.name in (tmp_path / name).read_text() or text is None


def test_the_files_of_a_dump_are_read_where_its_only_manifest_is_damaged(
    dump: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (dump / "manifest.json").write_text(str(DAMAGED["cut off"]))
    status, printed, _ = run(capsys, "report", dump, "-o", dump.parent / "out")
    assert (status, "note: made from the files alone" in printed) == (0, True)
    assert f"note: left out: {dump / 'manifest.json'}: a damaged manifest" in printed


@pytest.mark.parametrize("name", ["index.html", "index.md", "manifest.json"])
def test_what_depyf_has_not_written_is_never_replaced(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    _written(tmp_path / name, "{}")
    status, out, err = run(capsys, "report", LOGS / "torch_2_13.log.gz")
    assert (status, out, len(err.splitlines())) == (2, "", 1)
    assert name in err
    assert "-o" in err
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(name, "{}")]
    (tmp_path / name).unlink()
    for _ in range(2):  # and our own are replaced
        assert run(capsys, "report", LOGS / "torch_2_13.log.gz")[0] == 0


def test_only_manifests_of_the_same_launch_count() -> None:
    def began(started: float, rank: Optional[int] = None, *command: str) -> Loaded:
        return Loaded("n", Run(started=started, rank=rank, command=("python", *command)), None)

    alone, ours = began(100.0), began(100.0, 0, "b.py")
    child, later = began(100.0), began(101.0)
    assert of_the_same_launch([alone, child, later, began(99.9)], alone.run) == [alone, child, later]
    other, later = began(97.0, 1, "b.py"), began(104.0, 2, "b.py")
    stale = [began(97.0, 3, "a.py"), began(20.0, 4, "b.py"), began(97.0, 0, "b.py"), began(97.0, None, "b.py")]
    assert of_the_same_launch([ours, other, later, *stale], ours.run) == [ours, other, later]


def test_neither_report_nor_diff_loads_torch() -> None:
    script = (
        "import sys, depyf.cli; status = depyf.cli.main(['diff', sys.argv[1], sys.argv[1]]); "
        "print(status, 'torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(LOGS / "torch_2_13.log.gz")],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "0 False", done.stderr


# --- dumps and logs that a stranger wrote: read, and never more than that -----------------------------------------


def test_a_manifest_shows_no_file_from_outside_of_its_directory(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "report", dump, "-o", dump.parent / "out")
    secret = dump.parent / "secret"
    secret.write_text("a key that nobody may see")
    (dump / "link.py").symlink_to(secret)
    os.mkfifo(dump / "pipe.py")
    manifest = json.loads((dump.parent / "out" / "manifest.json").read_text())
    paths = [str(secret), "../secret", "link.py", "pipe.py", "a\0b", ".", "sub/../../secret"]
    for artifact, path in zip(manifest["artifacts"], paths):
        artifact.update(path=path, text=None)
    (dump / "manifest.json").write_text(json.dumps(manifest))
    status, _, _ = run(capsys, "report", dump, "-o", dump.parent / "shown")
    assert status == 0
    for page in (dump.parent / "shown").iterdir():
        assert "nobody may see" not in page.read_text()
    assert "nobody may see" not in "".join(loaded_texts(dump))


def loaded_texts(directory: Path) -> Iterator[str]:
    """The pages hold texts packed: these are what goes into them."""
    for loaded in load([str(directory)]):
        yield from (loaded.text_of(artifact) or "" for artifact in loaded.run.artifacts)


def test_pipes_among_the_files_of_a_dump_are_not_waited_for(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(dump / "manifest.json")
    os.mkfifo(dump / "full_code_for_g_0.py")
    os.mkfifo(dump / "dedicated_log_torch_trace_x.log")
    status, _, err = run(capsys, "report", dump, "-o", dump.parent / "out")
    assert (status, err) == (0, "")
    status, _, err = run(capsys, "report", dump / "manifest.json")
    assert status == 2
    (dump / "index.html").unlink(missing_ok=True)
    os.mkfifo(dump / "index.html")
    status, _, err = run(capsys, "report", dump, "-o", dump)
    assert (status, "not written by depyf" in err) == (2, True)


def test_the_phases_are_a_trace_for_perfetto(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    arguments = ("report", LOGS / "torch_2_7.log.gz", "-o", tmp_path / "out", "--perfetto", trace)
    status, out, _ = run(capsys, *arguments)
    assert status == 0
    assert f"{'the trace':<24}{trace}" in out
    events = json.loads(trace.read_text())["traceEvents"]
    spans = [each for each in events if each["ph"] == "X"]
    phases = load([str(LOGS / "torch_2_7.log.gz")])[0].run.phases
    assert [each["name"] for each in spans] == [each.name for each in phases]
    assert min(each["ts"] for each in spans) == 0
    assert sum(each["dur"] for each in spans) == pytest.approx(sum(each.seconds for each in phases) * 1e6, abs=1)
    threads = {each["tid"]: each["args"]["name"] for each in events if each["name"] == "thread_name"}
    assert {each["tid"] for each in spans} == set(threads)
    assert any(name.startswith("0/0 ") for name in threads.values())

    assert run(capsys, *arguments)[0] == 0  # depyf's own is replaced
    trace.write_text("{}")
    status, _, complaint = run(capsys, *arguments)
    assert status == 2
    assert "not written by depyf" in complaint
    assert trace.read_text() == "{}"
    with pytest.raises(SystemExit):
        run(capsys, "report", LOGS, "--perfetto", tmp_path / "trace.txt")


@pytest.mark.parametrize("ending", ["md", "svg"])
def test_the_flow_of_calls_is_a_file(capsys: pytest.CaptureFixture[str], tmp_path: Path, ending: str) -> None:
    chart = tmp_path / f"flow.{ending}"
    arguments = ("report", LOGS / "torch_2_7.log.gz", "-o", tmp_path / "out", "--flow", chart)
    status, out, _ = run(capsys, *arguments)
    assert status == 0
    assert f"{'the flow of calls':<24}{chart}" in out
    text = chart.read_text()
    assert "Call of scaled" in text
    if ending == "svg":
        assert 'href="out/index.html#' in text

    assert run(capsys, *arguments)[0] == 0  # depyf's own is replaced
    chart.write_text("mine")
    status, _, complaint = run(capsys, *arguments)
    assert (status, "not written by depyf" in complaint) == (2, True)
    assert chart.read_text() == "mine"
    with pytest.raises(SystemExit):
        run(capsys, "report", LOGS, "--flow", tmp_path / "flow.png")


def test_a_report_needs_no_decompiler_and_no_torch() -> None:
    """They take longer to import than a small log to report."""
    stages = {f"depyf.decompiler.{name}" for name in ("api", "pipeline", "structure", "verify")}
    code = f"import sys, depyf.cli; print({stages | {'torch', 'importlib.metadata'}} & {{*sys.modules}})"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"
