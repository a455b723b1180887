"""``prepare_debug`` and ``debug`` in typical use."""

from __future__ import annotations

import ast
import bdb
import gc
import logging
import os
import re
import sys
import threading
import weakref
from pathlib import Path
from typing import Any, List, Tuple

import pytest

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("fresh_dynamo")]
torch = pytest.importorskip("torch")

import depyf  # noqa: E402
from depyf.dynamo.capture.hub import capture  # noqa: E402
from depyf.dynamo.capture.records import GraphFile, TransformedCode  # noqa: E402
from depyf.dynamo.capture.session import Session  # noqa: E402
from depyf.dynamo.dump.pausing import _run_only, let_nothing_compile  # noqa: E402
from depyf.dynamo.hooks import cache_entries, compiled_names, generated_code, safely  # noqa: E402
from depyf.dynamo.hooks.hooked_context import undone_afterwards  # noqa: E402
from depyf.dynamo.hooks.patching import collecting  # noqa: E402
from depyf.dynamo.store.directory import DumpDirectory  # noqa: E402


def branching(x: Any, y: Any) -> Any:
    z = x.sin() + y
    if z.sum() > 100:
        z = z * 2
    return z - y


def inputs() -> Any:
    return torch.ones(3, requires_grad=True), torch.arange(3.0)


def names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir() if not path.name.startswith(".")}


def compile_and_run(function: Any = branching, backend: Any = "aot_eager") -> Any:
    return torch.compile(function, backend=backend)(*inputs())


def test_files_of_a_training_step_have_the_known_names(tmp_path: Path) -> None:
    with depyf.prepare_debug(tmp_path):
        compile_and_run().sum().backward()
    found = names(tmp_path)
    assert {"__transformed_code_0_for_branching.py", "full_code_for_branching_0.py"} <= found
    for stage in ("Captured_Graph", "Joint_graph", "Forward_graph", "Backward_graph"):
        assert any(re.fullmatch(rf"__compiled_fn_\d+\.{stage}\.0\.py", name) for name in found), stage
    resumed = r"__transformed_code_0_for_(torch_dynamo_)?resume_in_branching(_at_\d+)?\.py"  # shorter in PyTorch 2.2
    assert any(re.fullmatch(resumed, name) for name in found)


def test_every_file_parses_and_holds_no_random_names(tmp_path: Path) -> None:
    with depyf.prepare_debug(tmp_path):
        compile_and_run().sum().backward()
    for path in tmp_path.glob("*.py"):
        text = path.read_text()
        ast.parse(text)
        assert not re.search(r"__compiled_fn_\d+_[0-9a-f]{8}_|\bat 0x[1-9a-f]", text), path.name


def test_the_path_may_be_text_or_path_like_and_is_created(tmp_path: Path) -> None:
    for target in (str(tmp_path / "a" / "b"), tmp_path / "c" / "d"):
        torch._dynamo.reset()
        with depyf.prepare_debug(target):
            compile_and_run()
        assert names(Path(target))


def test_entered_and_left_by_hand_in_different_functions(tmp_path: Path) -> None:
    held = []

    def start() -> None:
        manager = depyf.prepare_debug(str(tmp_path))
        manager.__enter__()
        held.append(manager)

    def stop() -> None:
        held.pop().__exit__(None, None, None)

    start()
    compile_and_run()
    stop()
    assert "full_code_for_branching_0.py" in names(tmp_path)
    assert capture.current() is None


def test_foreign_files_stay_and_dumping_again_works(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("a user's own file, not Python")
    for _ in range(2):
        torch._dynamo.reset()
        with depyf.prepare_debug(tmp_path):
            compile_and_run()
    assert (tmp_path / "mine.py").read_text() == "a user's own file, not Python"
    assert {"__transformed_code_0_for_branching.py", "__transformed_code_1_for_branching.py"} <= names(tmp_path)


def test_nested_ones_are_all_complete_and_code_runs_from_the_innermost(tmp_path: Path) -> None:
    outer, inner = tmp_path / "outer", tmp_path / "inner"

    def only_outer(x: Any, y: Any) -> Any:
        return x * y

    with depyf.prepare_debug(outer):
        compile_and_run(only_outer)
        with depyf.prepare_debug(inner) as prepared:
            compile_and_run().sum().backward()
    assert {"full_code_for_only_outer_0.py", "__transformed_code_0_for_only_outer.py"} <= names(outer) - names(inner)
    assert {"full_code_for_branching_0.py", "__transformed_code_0_for_branching.py"} <= names(inner)
    assert any("Backward_graph" in name for name in names(inner))
    for name in names(inner) - {"manifest.json", "index.md", "index.html", "stages"}:
        assert (outer / name).read_text() == (inner / name).read_text(), name
    session = prepared.session
    assert session is not None
    (entry,) = cache_entries.cache_entries(branching.__code__)
    assert os.path.dirname(entry.code.co_filename) == str(inner)
    assert any(record.running_code() is entry.code for record in session.records(TransformedCode))


def test_nested_ones_into_one_directory_dump_once(tmp_path: Path) -> None:
    with depyf.prepare_debug(tmp_path), depyf.prepare_debug(tmp_path):
        compile_and_run(backend="eager")
    assert "full_code_for_branching_0.py" in names(tmp_path)
    assert not [name for name in names(tmp_path) if "_1_for_branching" in name or "branching_1.py" in name]


def test_an_exception_thrown_through_it_is_the_users_and_the_dump_is_complete(tmp_path: Path) -> None:
    def failing() -> None:
        with depyf.prepare_debug(tmp_path):
            compile_and_run(backend="eager")
            raise KeyError("the user's")

    with pytest.raises(KeyError, match="the user's"):
        failing()
    assert "full_code_for_branching_0.py" in names(tmp_path)
    assert capture.current() is None


def test_torch_is_as_before_afterwards(tmp_path: Path) -> None:
    from torch._dynamo import convert_frame
    from torch._inductor.codecache import PyCodeCache

    def state() -> Any:
        return (
            dict(convert_frame._bytecode_hooks),
            [getattr(*name) for name in [compiled_names.maker_of_names()] if name is not None],
            vars(PyCodeCache)["load_by_key_path"],
            vars(torch.fx.GraphModule)["__init__"],
            [maker.find() for maker in generated_code.wrapper_makers()],
            torch._dynamo.reset,
            [type(handler).__name__ for handler in logging.getLogger("torch.__trace").handlers],
        )

    with depyf.prepare_debug(tmp_path):  # what torch imports and removes at the first use is done after this
        compile_and_run()
    before = state()
    with depyf.prepare_debug(tmp_path):
        assert state() != before
        compile_and_run(lambda x, y: x - y)
    assert state() == before


def test_a_directory_that_cannot_be_written_costs_one_message(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    expected = branching(*inputs())
    with caplog.at_level(logging.WARNING, "depyf"), depyf.prepare_debug(tmp_path / "file" / "below"):
        result = compile_and_run()
    assert torch.equal(result, expected)
    assert [record.message for record in caplog.records if "can't write" in record.message]
    assert len(caplog.records) == 1


def test_a_bug_of_ours_does_not_reach_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*args: Any, **kwargs: Any) -> Any:
        raise ZeroDivisionError("a bug")

    for name in (
        "depyf.dynamo.capture.transformed.render",
        "depyf.dynamo.capture.hub.dump_graph",
        "depyf.dynamo.capture.graphs.SourceFile",
    ):
        monkeypatch.setattr(name, broken)
    monkeypatch.setattr("depyf.dynamo.capture.wrappers.SourceFile", broken)
    monkeypatch.setattr(safely, "_reported", {})
    with caplog.at_level(logging.WARNING, "depyf"), depyf.prepare_debug(tmp_path):
        result = compile_and_run()
    assert torch.equal(result, branching(*inputs()))
    assert any("ZeroDivisionError" in record.message for record in caplog.records)


def test_graphs_and_transformed_code_run_from_the_dump(tmp_path: Path) -> None:
    def running(backend: str) -> set[str]:
        seen = set()

        def trace(frame: Any, event: str, argument: Any) -> Any:
            if frame.f_code.co_filename.startswith(str(tmp_path)):
                seen.add(os.path.basename(frame.f_code.co_filename))
            return None

        torch._dynamo.reset()
        compiled = torch.compile(branching, backend=backend)
        with depyf.prepare_debug(tmp_path / backend):
            compiled(*inputs()).sum().backward()
        threading.settrace(trace)
        import sys

        sys.settrace(trace)
        try:
            compiled(*inputs()).sum().backward()
        finally:
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]
        return {re.sub(r"\d+", "N", name) for name in seen}

    assert {"__transformed_code_N_for_branching.py", "__compiled_fn_N.Captured_Graph.N.py"} <= running("eager")
    assert {
        "__compiled_fn_N.Forward_graph.N.py",
        "__compiled_fn_N.Backward_graph.N.py",
        *("__compiled_fn_N.AOT_runtime_wrapper_orchestration.N.py" for _ in generated_code.wrapper_makers()),
    } <= running("aot_eager")


def test_a_graph_that_a_backend_has_changed_runs_from_its_own_file(tmp_path: Path) -> None:
    def negating(module: Any, example: Any) -> Any:
        for node in module.graph.nodes:
            if node.target == torch.sin or node.target == "sin":
                node.target = "cos"
        module.recompile()
        return module.forward

    with depyf.prepare_debug(tmp_path):
        result = torch.compile(lambda x: x.sin() + 1, backend=negating)(torch.ones(2))
    assert torch.equal(result, torch.ones(2).cos() + 1)
    (file,) = tmp_path.glob("*.Backend_graph.0.py")
    assert ".cos()" in file.read_text()


def test_log_bytecode_stores_code_objects_that_load_again(tmp_path: Path) -> None:
    dill = pytest.importorskip("dill")
    with depyf.prepare_debug(tmp_path, log_bytecode=True):
        compile_and_run(lambda x, y: x + y)
    stem = "__transformed_code_0_for__lambda_.py"
    original = dill.loads((tmp_path / f"{stem}.original_bytecode").read_bytes())
    transformed = dill.loads((tmp_path / f"{stem}.transformed_bytecode").read_bytes())
    assert original.co_varnames[:2] == transformed.co_varnames[:2] == ("x", "y")
    assert any(name.startswith("__compiled_fn_") for name in transformed.co_names)


def test_a_late_backward_belongs_to_its_own_function(tmp_path: Path) -> None:
    first = torch.compile(lambda x: x.sin().sum(), backend="aot_eager", dynamic=True)
    second = torch.compile(lambda x: x.cos().sum(), backend="aot_eager", dynamic=True)
    x = torch.ones(4, requires_grad=True)
    with depyf.prepare_debug(tmp_path) as prepared:
        losses = [first(x), second(x)]
        losses[1].backward()
        losses[0].backward()
    session = prepared.session
    assert isinstance(session, Session)
    texts = {file.function: file.text for file in session.records(GraphFile) if file.stage.value == "Backward_graph"}
    assert len(texts) == 2
    for function, text in texts.items():
        captured = next(tmp_path.glob(f"{function}.Captured_Graph.0.py")).read_text()
        assert ("aten.cos" in text) == (".sin()" in captured)


def test_threads_may_compile_at_the_same_time(tmp_path: Path) -> None:
    results = {}

    def work(number: int) -> None:
        x = torch.full((3,), float(number))
        namespace: dict[str, Any] = {}
        exec(compile(f"def thread_{number}(x):\n    return x * {number} + x.sin()\n", __file__, "exec"), namespace)
        function = namespace[f"thread_{number}"]
        results[number] = torch.equal(torch.compile(function, backend="eager")(x), function(x))

    with depyf.prepare_debug(tmp_path):
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert results == {0: True, 1: True, 2: True, 3: True}
    assert {f"__transformed_code_0_for_thread_{number}.py" for number in range(4)} <= names(tmp_path)


def test_dynamo_does_not_trace_our_own_code(tmp_path: Path) -> None:
    # The backward graph is compiled late, while the compiled function runs and Dynamo looks at every new frame.
    def step(x: Any) -> Any:
        (x.sin() * 2).sum().backward()
        return x.grad + 1

    x = torch.ones(3, requires_grad=True)
    with depyf.prepare_debug(tmp_path) as prepared:
        torch.compile(step, backend="aot_eager")(x)
    assert prepared.session is not None
    ours = os.path.dirname(depyf.__file__)
    transformed = prepared.session.records(TransformedCode)
    assert transformed
    assert [record for record in transformed if record.filename.startswith(ours)] == []


def test_a_loader_of_another_project_is_used_when_it_was_put_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torch._inductor.codecache import PyCodeCache

    from depyf.explain import enable_debugging

    calls = []

    def loader(key: str, path: str, linemap: Any = None, attrs: Any = None, **kwargs: Any) -> Any:
        calls.append((key, sorted(kwargs)))
        return "loaded"

    monkeypatch.setattr(enable_debugging, "patched_load_by_key_path", loader)
    with depyf.prepare_debug(tmp_path):
        assert PyCodeCache.load_by_key_path("key", "path.py", set_sys_modules=False) == "loaded"
    assert calls == [("key", ["set_sys_modules"])]


@pytest.mark.parametrize(
    "text",
    [
        "import math\ntriton_poi_fused_0 = math.tau\n",
        # Measured for `max-autotune`: what PyTorch found is stored beside the file.
        "def call(args):\n    pass\n\n\ndef benchmark_all_configs(args):\n    pass\n",
    ],
    ids=["one kernel", "a candidate"],
)
def test_single_kernels_are_loaded_from_where_inductor_keeps_them(tmp_path: Path, text: str) -> None:
    from torch._inductor.codecache import PyCodeCache

    kernel = tmp_path / "kernel.py"
    kernel.write_text(text)
    loaded = []

    def backend(module: Any, example: Any) -> Any:
        loaded.append(PyCodeCache.load_by_key_path(f"depyf_{tmp_path.name}", str(kernel)))
        return module.forward

    with depyf.prepare_debug(tmp_path / "dump"):
        compile_and_run(backend=backend)
    assert {module.__file__ for module in loaded} == {str(kernel)}
    assert not list((tmp_path / "dump").glob("*.kernel_*"))


def test_the_story_of_a_function_survives_a_reset_of_dynamo(tmp_path: Path) -> None:
    with depyf.prepare_debug(tmp_path):
        compile_and_run(lambda x, y: x + y)
        torch._dynamo.reset()
        compile_and_run(lambda x, y: x - y)
    stories = {path.name: path.read_text() for path in tmp_path.glob("full_code_for__lambda__*.py")}
    assert set(stories) == {"full_code_for__lambda__0.py", "full_code_for__lambda__1.py"}
    assert all("def __guard_" in text for text in stories.values())


def test_a_hostile_repr_does_no_harm(tmp_path: Path) -> None:
    class Hostile:
        def __repr__(self) -> str:
            raise ValueError("no repr")

    hostile = Hostile()

    def function(x: Any, y: Any) -> Any:
        table = {"hostile": hostile}
        torch._dynamo.graph_break()
        return x + y + len(table)

    with depyf.prepare_debug(tmp_path):
        result = compile_and_run(function, "eager")
    assert torch.equal(result, function(*inputs()))


def test_long_and_foreign_function_names_make_short_ascii_file_names(tmp_path: Path) -> None:
    namespace: dict[str, Any] = {}
    long, foreign = "long_" * 60, "größe"
    source = f"def {long}(x, y):\n    return x + y\n\ndef {foreign}(x, y):\n    return x - y\n"
    exec(compile(source, __file__, "exec"), namespace)  # older versions of torch wrap functions that have no file
    with depyf.prepare_debug(tmp_path):
        for name in (long, foreign):
            compile_and_run(namespace[name], "eager")
    assert all(name.isascii() and len(name) < 150 for name in names(tmp_path))
    assert "__transformed_code_0_for_gr__e.py" in names(tmp_path)


def test_records_say_what_was_captured(tmp_path: Path) -> None:
    with depyf.prepare_debug(tmp_path) as prepared:
        compile_and_run()
    session = prepared.session
    assert session is not None
    first = session.records(TransformedCode)[0]
    compile_id = first.compile_id
    assert (first.function, first.index) == ("branching", 0)
    assert re.fullmatch(r"\d+/0", str(compile_id))  # PyTorch 2.2 counts on after a reset
    assert first.path == str(tmp_path / "__transformed_code_0_for_branching.py")
    assert first.graphs == (session.function_name(compile_id),)
    assert session.events("dynamo_graph_break_reason")[0].compile_id == compile_id
    assert session.events("compilation_metrics", str(compile_id))[-1].meta["co_name"] == "branching"


def test_debug_inside_prepare_debug_is_an_error(tmp_path: Path) -> None:
    with depyf.prepare_debug(tmp_path), pytest.raises(RuntimeError, match="prepare_debug"), depyf.debug():
        pass


def test_debug_pauses_once_and_compiles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pauses = []
    monkeypatch.setattr("sys.breakpointhook", lambda: pauses.append(1))
    calls = []

    def counting(module: Any, example: Any) -> Any:
        calls.append(1)
        return module.forward

    compiled = torch.compile(lambda x: x + 1, backend=counting)
    with depyf.prepare_debug(tmp_path):
        compiled(torch.ones(2))
    with depyf.debug():
        assert torch.equal(compiled(torch.ones(3, 3)), torch.ones(3, 3) + 1)
    assert (pauses, calls) == ([1], [1])
    assert str(tmp_path) in capsys.readouterr().out
    compiled(torch.ones(3, 3))
    assert calls == [1, 1]


def test_quitting_the_debugger_leaves_nothing_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    def quits(frame: Any, event: str, argument: Any) -> Any:
        raise bdb.BdbQuit  # as pdb does, at the next line after breakpoint()

    def hook() -> None:
        frame = sys._getframe(1)
        assert frame.f_code.co_filename == __file__
        assert frame.f_locals["wanted"] == 5
        frame.f_trace = quits
        sys.settrace(lambda *_: None)

    monkeypatch.setattr("sys.breakpointhook", hook)
    wanted, calls = 5, []
    previous = sys.gettrace()
    try:
        with pytest.raises(bdb.BdbQuit), depyf.debug():
            raise AssertionError("the debugger was quit before")
    finally:
        sys.settrace(previous)
    torch.compile(lambda x: x + wanted, backend=lambda module, _: calls.append(1) or module)(torch.ones(3))
    assert calls == [1]


@pytest.mark.parametrize("install", [let_nothing_compile, _run_only])
def test_nothing_is_compiled_without_compilation_with_or_without_stances(install: Any) -> None:
    calls = []

    def counting(module: Any, example: Any) -> Any:
        calls.append(1)
        return module.forward

    compiled = torch.compile(lambda x: x * 2, backend=counting)
    with undone_afterwards("testing") as undo:
        collecting(undo, install)
        compiled(torch.ones(2))
    assert calls == []
    compiled(torch.ones(2))
    assert calls == [1]


def test_what_dynamo_frees_is_freed_under_prepare_debug(tmp_path: Path) -> None:
    def freed_after_reset() -> List[bool]:
        modules = []

        def backend(module: Any, example: Any) -> Any:
            modules.append(weakref.ref(module))
            return module.forward

        def function(x: Any, y: Any) -> Any:
            z = x + y
            torch._dynamo.graph_break()
            return z * 2

        compile_and_run(function, backend)
        torch._dynamo.reset()
        gc.collect()
        return [module() is None for module in modules]

    freed = freed_after_reset()
    assert any(freed)
    with depyf.prepare_debug(tmp_path):
        assert freed_after_reset() == freed


@pytest.mark.parametrize("directory", ["a\0b", b"a\0b"])
def test_a_directory_with_nul_in_its_name_is_refused_before_anything_begins(directory: Any) -> None:
    with pytest.raises(ValueError, match="NUL"):
        depyf.prepare_debug(directory)


def test_a_directory_may_be_given_as_bytes(tmp_path: Path) -> None:
    session = depyf.prepare_debug(os.fsencode(tmp_path / "dump"))  # type: ignore[arg-type]
    assert session.dump_src_dir == str(tmp_path / "dump")


def test_a_directory_whose_name_is_no_utf8_changes_no_exception(tmp_path: Path) -> None:
    def mean_of_product(x: Any, y: Any) -> Any:
        torch._dynamo.graph_break()
        return (x @ y).mean()

    def error_of(*arguments: Any) -> Tuple[type, str]:
        torch._dynamo.reset()
        with pytest.raises(Exception) as raised:
            torch.compile(mean_of_product, backend="eager")(*arguments)
        return type(raised.value), str(raised.value).splitlines()[0]

    wrong = torch.ones(2, 3), torch.ones(2, 3)
    expected = error_of(*wrong)
    directory = os.path.join(tmp_path, os.fsdecode(b"x\xff"))
    try:
        os.mkdir(directory)
    except OSError:
        pytest.skip("this file system takes UTF-8 only")
    with depyf.prepare_debug(directory):
        assert error_of(*wrong) == expected
    assert any(name.startswith("__transformed_code_0_for_mean_of_product") for name in os.listdir(directory))
    assert os.path.islink(DumpDirectory.at(directory).path)
    assert os.path.realpath(DumpDirectory.at(directory).path) == os.path.realpath(directory)


def test_two_threads_may_enter_one_object(tmp_path: Path) -> None:
    session, both = depyf.prepare_debug(tmp_path), threading.Barrier(2, timeout=30)

    def run() -> None:
        with session:
            both.wait()

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert capture._sessions == ()
    assert capture._undo == []


def test_the_collector_pauses_while_the_end_of_a_session_is_written(tmp_path: Path) -> None:
    within: List[bool] = []

    def note(phase: str, info: object) -> None:
        frame = sys._getframe(1) if phase == "start" else None
        names = []
        while frame is not None:
            names.append(frame.f_code.co_name)
            frame = frame.f_back
        within.append("_write_the_rest" in names)

    before = gc.get_threshold()
    gc.callbacks.append(note)
    try:
        with depyf.prepare_debug(tmp_path):
            torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
            gc.set_threshold(100, 2, 2)
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(note)
    assert gc.isenabled()
    assert not any(within)
