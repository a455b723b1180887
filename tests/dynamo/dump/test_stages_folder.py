"""The folder ``stages`` of a dump: what is rarely read, and what is not there because an equal file is."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any, Set

import pytest

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("fresh_dynamo")]
torch = pytest.importorskip("torch")

import depyf  # noqa: E402
from depyf.base.quick_dataclass import replace  # noqa: E402
from depyf.dynamo.capture.graphs import run_from_files, write_graph  # noqa: E402
from depyf.dynamo.capture.hub import capture  # noqa: E402
from depyf.dynamo.capture.session import Session  # noqa: E402
from depyf.dynamo.dump.facts import artifacts_of  # noqa: E402
from depyf.dynamo.questions.extract.question import _files  # noqa: E402
from depyf.dynamo.store.directory import DumpDirectory  # noqa: E402
from depyf.report.model.manifest import to_json  # noqa: E402
from depyf.report.model.run import Run  # noqa: E402
from depyf.report.read.reading import NothingToRead, load  # noqa: E402
from depyf.torch_trace import file_names  # noqa: E402
from depyf.torch_trace.stages import NamedStage, Stage  # noqa: E402


def f(x: Any) -> Any:
    return x.sin() + 1


def files(directory: Path) -> Set[str]:
    return {
        path.relative_to(directory).as_posix()
        for path in directory.rglob("*")
        if path.is_file() and ".depyf_writers" not in path.parts
    }


def graph(operation: str) -> str:
    return f"class GraphModule(torch.nn.Module):\n    def forward(self, x):\n        return x.{operation}()\n"


def session_at(path: Path, **options: bool) -> Session:
    return Session(DumpDirectory.at(path), clean_wild_fx_code=True, log_bytecode=False, **options)


def written(session: Session, *graphs: Any) -> None:
    for stage, operation in graphs:
        write_graph(session, "0/0", "__compiled_fn_1", stage, 0, graph(operation))


def test_states_between_stages_are_in_the_folder_and_equal_ones_share_a_file(tmp_path: Path) -> None:
    session = session_at(tmp_path)
    written(
        session,
        (NamedStage("pre_insert_deferred_runtime_asserts"), "sin"),
        (Stage.CAPTURED, "sin"),
        (Stage.BEFORE_PRE_GRAD, "sin"),
        (Stage.AFTER_PRE_GRAD, "cos"),
        (Stage.BEFORE_POST_GRAD, "tan"),
        (Stage.AFTER_POST_GRAD, "tan"),
        (NamedStage("before_split"), "sin"),
    )
    assert files(tmp_path) == {
        "__compiled_fn_1.Captured_Graph.0.py",
        "stages/__compiled_fn_1.AFTER_PRE_GRAD.0.py",
        "__compiled_fn_1.AFTER_POST_GRAD.0.py",
        "__compiled_fn_1.before_split.0.py",  # somebody else's pass has printed it
    }
    shared = {file.stage.value: file.equals for file in session.graph_files() if file.equals}
    assert shared == {
        "pre_insert_deferred_runtime_asserts": "__compiled_fn_1.Captured_Graph.0.py",
        "BEFORE_PRE_GRAD": "__compiled_fn_1.Captured_Graph.0.py",
        "BEFORE_POST_GRAD": "__compiled_fn_1.AFTER_POST_GRAD.0.py",
    }


ASSERTS = NamedStage("pre_insert_deferred_runtime_asserts")


def test_the_graph_before_asserts_has_a_file_if_they_change_it(tmp_path: Path) -> None:
    session = session_at(tmp_path)
    written(session, (ASSERTS, "sin"))
    assert files(tmp_path) == set()  # the next graph follows at once, and nearly always is this one
    written(session, (Stage.CAPTURED, "cos"))
    assert files(tmp_path) == {
        "__compiled_fn_1.Captured_Graph.0.py",
        "stages/__compiled_fn_1.pre_insert_deferred_runtime_asserts.0.py",
    }


def test_the_graph_before_asserts_is_kept_if_no_graph_follows(tmp_path: Path) -> None:
    session = session_at(tmp_path)
    written(session, (ASSERTS, "sin"))
    run_from_files(session, "0/0", [])  # as at the end of a compilation, also of one that has failed
    assert files(tmp_path) == {"stages/__compiled_fn_1.pre_insert_deferred_runtime_asserts.0.py"}


def test_a_graph_outside_of_a_compilation_does_not_wait(tmp_path: Path) -> None:
    write_graph(session_at(tmp_path), None, "__compiled_fn_1", ASSERTS, 0, graph("sin"))
    assert files(tmp_path) == {"stages/__compiled_fn_1.pre_insert_deferred_runtime_asserts.0.py"}


def test_a_forked_child_does_not_write_the_graph_that_waits_in_its_parent(tmp_path: Path) -> None:
    with depyf.prepare_debug(tmp_path):
        (session,) = capture.receivers()
        written(session, (ASSERTS, "sin"))
        capture._reset_after_fork()
        assert session.held == {}


def test_a_session_that_ends_meanwhile_keeps_the_graph_before_asserts(tmp_path: Path) -> None:
    with depyf.prepare_debug(tmp_path):
        (session,) = capture.receivers()
        written(session, (ASSERTS, "sin"))
    assert "stages/__compiled_fn_1.pre_insert_deferred_runtime_asserts.0.py" in files(tmp_path)


def test_all_files_are_beside_each_other_where_this_is_asked_for(tmp_path: Path) -> None:
    written(session_at(tmp_path, everything=True), (Stage.CAPTURED, "sin"), (Stage.BEFORE_PRE_GRAD, "sin"))
    assert files(tmp_path) == {"__compiled_fn_1.Captured_Graph.0.py", "__compiled_fn_1.BEFORE_PRE_GRAD.0.py"}


def test_the_page_and_the_manifest_have_every_state(tmp_path: Path) -> None:
    with depyf.prepare_debug(tmp_path / "read"):
        torch.compile(f, backend="aot_eager")(torch.ones(2))
    torch._dynamo.reset()
    with depyf.prepare_debug(tmp_path / "all", dump="all"):
        torch.compile(f, backend="aot_eager")(torch.ones(2))
    (read,), (everything,) = load([str(tmp_path / "read")]), load([str(tmp_path / "all")])
    # Of the second file the compiled function has another number.
    assert [(each.kind, each.stage) for each in read.run.artifacts] == [
        (each.kind, each.stage) for each in everything.run.artifacts
    ]
    assert all(read.text_of(each) for each in read.run.artifacts)
    assert all("/" not in (each.path or "") for each in everything.run.artifacts)
    assert not (tmp_path / "all" / "stages").exists()


def test_a_dump_without_a_manifest_is_read_with_its_folder(tmp_path: Path) -> None:
    written(session_at(tmp_path), (Stage.CAPTURED, "sin"), (Stage.AFTER_PRE_GRAD, "cos"))
    (loaded,) = load([str(tmp_path)])
    assert [(each.id, each.path) for each in loaded.run.artifacts] == [
        ("__compiled_fn_1.Captured_Graph.0.py", "__compiled_fn_1.Captured_Graph.0.py"),
        ("__compiled_fn_1.AFTER_PRE_GRAD.0.py", "stages/__compiled_fn_1.AFTER_PRE_GRAD.0.py"),
    ]


@pytest.mark.parametrize("what", ["file", "link", "link to nothing"])
def test_where_something_else_has_the_name_of_the_folder_the_files_are_beside_it(tmp_path: Path, what: str) -> None:
    dump, elsewhere = tmp_path / "dump", tmp_path / "elsewhere"
    dump.mkdir(mode=0o700)
    if what == "file":
        (dump / "stages").write_text("of the program")
    else:
        if what == "link":
            elsewhere.mkdir()
        (dump / "stages").symlink_to(elsewhere, target_is_directory=True)
    written(session_at(dump), (Stage.AFTER_PRE_GRAD, "sin"))
    assert (dump / "__compiled_fn_1.AFTER_PRE_GRAD.0.py").is_file()
    assert not (elsewhere.exists() and os.listdir(elsewhere))


def test_a_stranger_s_link_in_the_place_of_the_folder_is_not_read(tmp_path: Path) -> None:
    dump, secret = tmp_path / "dump", tmp_path / "secret"
    written(session_at(dump), (Stage.AFTER_PRE_GRAD, "sin"))
    (loaded,) = load([str(dump)])
    artifact = replace(loaded.run.artifacts[0], text=None)
    assert loaded.text_of(artifact)
    (dump / "stages").rename(secret)
    (dump / "stages").symlink_to(secret, target_is_directory=True)
    assert loaded.text_of(artifact) is None
    with pytest.raises(NothingToRead):
        load([str(dump)])


def test_a_file_that_another_process_may_have_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = session_at(tmp_path)
    written(session, (Stage.BEFORE_POST_GRAD, "sin"))
    monkeypatch.setattr(session.directory, "_shared", True)
    written(session, (Stage.AFTER_POST_GRAD, "sin"))
    assert "stages/__compiled_fn_1.BEFORE_POST_GRAD.0.py" in files(tmp_path)
    assert [file.equals for file in session.graph_files()] == ["", ""]


def test_what_an_earlier_run_has_left_is_replaced_where_it_is(tmp_path: Path) -> None:
    flat, folder = "__compiled_fn_1.BEFORE_PRE_GRAD.0.py", "stages/__compiled_fn_1.AFTER_PRE_GRAD.0.py"
    (tmp_path / "stages").mkdir()
    for name in (flat, folder):
        (tmp_path / name).write_text(f"# of __compiled_fn_1, compile id 0/0\n#\n{graph('cos')}")
    written(
        session_at(tmp_path),
        *((stage, "sin") for stage in (Stage.CAPTURED, Stage.BEFORE_PRE_GRAD, Stage.AFTER_PRE_GRAD)),
    )
    assert files(tmp_path) == {"__compiled_fn_1.Captured_Graph.0.py", flat, folder}
    assert all(".sin()" in (tmp_path / name).read_text() for name in (flat, folder))


def test_what_an_earlier_run_has_left_is_not_taken_for_a_graph_that_waits(tmp_path: Path) -> None:
    left = tmp_path / "stages" / "__compiled_fn_1.pre_insert_deferred_runtime_asserts.0.py"
    left.parent.mkdir()
    left.write_text(f"# of __compiled_fn_1, compile id 0/0\n#\n{graph('cos')}")
    session = session_at(tmp_path)
    written(session, (ASSERTS, "sin"))
    assert ".sin()" in left.read_text()
    written(session, (Stage.CAPTURED, "sin"))
    assert files(tmp_path) == {"__compiled_fn_1.Captured_Graph.0.py"}


def test_a_file_in_the_folder_is_written_again_where_the_folder_was_removed(tmp_path: Path) -> None:
    directory = DumpDirectory.at(tmp_path)
    for text in ("first", "second"):
        assert directory.write("stages/a.AOT_b.0.py", text) is not None
        assert (tmp_path / "stages" / "a.AOT_b.0.py").read_text() == text
        shutil.rmtree(tmp_path / "stages")


def test_a_shared_state_has_the_mark_of_its_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = session_at(tmp_path)
    monkeypatch.setattr(session.directory, "_name_for", lambda name, data, slot: file_names.marked(name, "process_1"))
    written(session, (Stage.CAPTURED, "sin"), (Stage.BEFORE_PRE_GRAD, "sin"))
    captured, before = artifacts_of(session.all_records(), session.directory.name_of)
    assert before.id == "__compiled_fn_1.BEFORE_PRE_GRAD.0.process_1.py"
    assert before.equals == captured.id == before.path


def test_a_script_is_made_of_the_newer_of_two_files(tmp_path: Path) -> None:
    (tmp_path / "stages").mkdir(parents=True)
    old = "# AFTER_PRE_GRAD of __compiled_fn_1, compile id 0/0\n#\n"
    (tmp_path / "stages" / "__compiled_fn_1.AFTER_PRE_GRAD.0.py").write_text(old + graph("cos"))
    session = session_at(tmp_path, everything=True)
    written(session, (Stage.CAPTURED, "sin"), (Stage.AFTER_PRE_GRAD, "sin"))
    artifacts = tuple(
        replace(each, text=None) for each in artifacts_of(session.all_records(), session.directory.name_of)
    )
    (tmp_path / "manifest.json").write_text(to_json(Run(artifacts=artifacts)))
    assert {source.stage: ".sin()" in source.text for source in _files(str(tmp_path))} == {
        Stage.CAPTURED: True,
        Stage.AFTER_PRE_GRAD: True,
    }


def test_a_word_that_is_no_choice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="dump='some': depyf knows 'read' and 'all'"):
        depyf.prepare_debug(tmp_path, dump="some")
