"""If depyf fails, the program's results stay the same, and one message says what failed, where and what to do."""

from __future__ import annotations

import contextlib
import errno
import importlib
import inspect
import logging
import os
import resource
import shutil
import signal
import sys
from pathlib import Path
from types import FunctionType
from typing import Any, Callable, ClassVar, Iterator, List, Tuple

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

import depyf  # noqa: E402
from depyf.dynamo.capture.hub import capture  # noqa: E402
from depyf.dynamo.dump import manifest  # noqa: E402
from depyf.dynamo.hooks import generated_code, safely  # noqa: E402
from depyf.dynamo.hooks.structured_trace_listener import TRACE_LOGGER, TraceHandler  # noqa: E402
from depyf.dynamo.store.directory import DumpDirectory  # noqa: E402
from depyf.report.model.manifest import from_json  # noqa: E402


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(safely, "_reported", {})
    torch._dynamo.reset()
    yield
    assert capture.current() is None
    torch._dynamo.reset()


@pytest.fixture
def messages(caplog: pytest.LogCaptureFixture) -> Callable[[], List[str]]:
    caplog.set_level(logging.WARNING, "depyf")
    return lambda: [record.getMessage() for record in caplog.records if record.name == "depyf"]


def user_function(x: Any, y: Any) -> Any:
    return (x.sin() + y) * 2


def train(function: Any = user_function, backend: Any = "aot_eager") -> List[Any]:
    """Results and gradients of a function, which is compiled twice; without a backend it is not compiled."""
    observed = []
    compiled = torch.compile(function, backend=backend, dynamic=False) if backend is not None else function
    for shape in ((3,), (2, 3)):
        x = torch.ones(shape, requires_grad=True)
        result = compiled(x, torch.arange(3.0))
        result.sum().backward()
        observed += [result.tolist(), x.grad.tolist()]
    return observed


def plain(function: Any = user_function) -> List[Any]:
    return train(function, backend=None)


EVENT_OF = "dynamo.hooks.structured_trace_listener:event_of"


def _raising(*args: Any, **kwargs: Any) -> Any:
    raise ZeroDivisionError("injected")


@contextlib.contextmanager
def broken(target: str) -> Iterator[None]:
    """Inside, the function at ``module:name`` of depyf.dynamo (or of depyf) has a bug in its first line."""
    module, _, name = target.partition(":")
    found: Any = importlib.import_module(f"depyf.{module}")
    for part in name.split("."):
        found = inspect.getattr_static(found, part)
    found = inspect.unwrap(getattr(found, "__func__", getattr(found, "fget", None) or found))
    assert isinstance(found, FunctionType)
    code = found.__code__
    found.__code__ = _raising.__code__.replace(co_filename=code.co_filename, co_freevars=code.co_freevars)
    try:
        yield
    finally:
        found.__code__ = code


@pytest.mark.parametrize(
    "target",
    [
        # putting hooks into torch, and taking them out
        "dynamo.capture.hub:Capture.start",
        "dynamo.capture.hub:Capture.stop",
        "dynamo.hooks.frame_evaluation:keep_dynamo_out",
        "dynamo.hooks.frame_evaluation:set_eval_frame",
        "dynamo.hooks.structured_trace_listener:listen",
        "dynamo.capture.graphs:GraphModules.watch",
        "dynamo.hooks.compiled_names:watch_compiled_names",
        "dynamo.capture.warm_caches:WarmCaches.watch",
        "dynamo.capture.hub:Capture._watch_reset",
        "dynamo.capture.hub:Capture._watch_bytecode",
        "dynamo.capture.kernels:watch_kernels",
        "dynamo.capture.wrappers:watch_wrappers",
        # what the hooks call
        "dynamo.hooks.structured_trace_listener:event_of",
        "dynamo.capture.hub:Capture._receive",
        "dynamo.capture.hub:Capture._note_name",
        "dynamo.capture.graphs:GraphModules._note",
        "dynamo.capture.wrappers:_move_to_file",
        "dynamo.capture.graphs:dump_graph",
        "dynamo.capture.fallbacks:_record",
        "dynamo.capture.graphs:run_from_files",
        "dynamo.capture.relocate:SourceFile.__init__",
        "dynamo.capture.transformed:capture_transformed",
        "dynamo.entries.hints:hints_for",
        "dynamo.capture.rendering:render",
        "dynamo.capture.rendering:_decompile",
        "dynamo.capture.listing:running_from",
        "dynamo.capture.session:Session.add",
        "dynamo.store.names:StableNames.text",
        "dynamo.store.directory:DumpDirectory.write",
        "dynamo.store.writers:Slot.others",
        "dynamo.hooks.compile_ids:current_compile_id",
        # the end
        "dynamo.dump.session_files:SessionFiles.flush",
        "dynamo.capture.session:Session.unreported",
        "dynamo.dump.full_code.writing:full_code",
        "dynamo.dump.full_code.story:stories_of",
        "dynamo.guards.entry_guards:EntryGuards.of",
    ],
)
def test_a_bug_anywhere_costs_one_message(target: str, tmp_path: Path, messages: Callable[[], List[str]]) -> None:
    if target.startswith("dynamo.capture.wrappers:") and not list(generated_code.wrapper_makers()):
        pytest.skip("this PyTorch generates no wrappers")
    if target == EVENT_OF and not hasattr(torch._logging._internal, "trace_structured"):
        pytest.skip("this PyTorch has no structured trace")
    expected = plain()
    before = hooks()
    reader, logger = logging.NullHandler(), logging.getLogger(TRACE_LOGGER)
    if target == EVENT_OF:  # records are made only where the program reads the trace, too
        logger.addHandler(reader)
    with broken(target), depyf.prepare_debug(tmp_path):
        observed = train()
    logger.removeHandler(reader)
    left = hooks() != before
    capture._uninstall()  # what a broken ``stop`` left must not reach the next test
    capture._sessions = ()
    assert observed == expected
    # What is not needed here, as all is proved and compiled, has no bug that shows.
    if target not in ("dynamo.capture.listing:running_from", "dynamo.capture.fallbacks:_record"):
        (message,) = messages()
        assert "ZeroDivisionError: injected" in message
        place = "torch_trace/events" if target == EVENT_OF else target.partition(":")[0].replace(".", "/")
        assert f"depyf/{place}.py:" in message
        assert "Your program continues" in message
        assert "please report" in message
    assert left == (target == "dynamo.capture.hub:Capture.stop")


def hooks() -> Any:
    from torch._dynamo import convert_frame
    from torch._inductor.codecache import PyCodeCache

    return (
        len(convert_frame._bytecode_hooks),
        vars(PyCodeCache)["load_by_key_path"],
        vars(torch.fx.GraphModule)["__init__"],
        torch._dynamo.reset,
        [handler for handler in logging.getLogger("torch.__trace").handlers if type(handler) is TraceHandler],
    )


@pytest.mark.parametrize(
    "target",
    [
        "dynamo.capture.graphs:dump_graph",
        "dynamo.capture.graphs:run_from_files",
        "dynamo.capture.rendering:render",
        "dynamo.dump.full_code.writing:full_code",
        "dynamo.dump.full_code.story:stories_of",
        "dynamo.dump.full_code.story:_story",
        "dynamo.guards.entry_guards:EntryGuards.of",
        "dynamo.dump.notes:fallbacks_text",
        "dynamo.dump.missing:missing",
        "dynamo.dump.facts:transformed_facts",
        "report.render.page:render_page",
        "report.render.markdown:index_markdown",
        "report.model.manifest:to_json",
        "report.analysis.findings:findings_of",
    ],
)
def test_what_failed_in_a_dump_stands_on_its_page_and_in_its_index(target: str, tmp_path: Path) -> None:
    with broken(target), depyf.prepare_debug(tmp_path):
        train()
    texts = {path.name: path.read_text() for path in tmp_path.glob("*") if path.suffix in (".html", ".md", ".json")}
    not_made = {
        "report.render.page": {"index.html"},
        "report.render.markdown": {"index.md"},
        "report.model.manifest": {"manifest.json"},
    }
    expected = {"index.html", "index.md", "manifest.json"} - not_made.get(target.partition(":")[0], set())
    assert {name for name in texts if "ZeroDivisionError: injected" in texts[name]} == expected


def test_a_file_that_can_not_be_written_stands_in_the_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Full(monkeypatch).names = ("__transformed_code_0_for_user_function.py",)
    with depyf.prepare_debug(tmp_path):
        train()
    index = (tmp_path / "index.md").read_text()
    assert "incomplete" in index
    assert "writing __transformed_code_0_for_user_function.py failed (OSError" in index


OF_THE_RUN = ("index.html", "index.md", "manifest.json")


class Full:
    """A disk that has no room for these files."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.names: Tuple[str, ...] = ()
        real = DumpDirectory._write_whole

        def write(directory: DumpDirectory, name: str, data: bytes) -> str:
            if name in self.names:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), name)
            return real(directory, name, data)

        monkeypatch.setattr(DumpDirectory, "_write_whole", write)


def other_function(x: Any, y: Any) -> Any:
    return x - y


@pytest.mark.parametrize("again", ["the next session", "the end of the process"])
@pytest.mark.parametrize("names", [OF_THE_RUN, OF_THE_RUN[:1], OF_THE_RUN[2:]], ids=["all", "page", "manifest"])
def test_a_page_that_found_no_room_is_written_when_there_is_some(
    names: Tuple[str, ...],
    again: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    messages: Callable[[], List[str]],
) -> None:
    disk = Full(monkeypatch)
    with depyf.prepare_debug(tmp_path):
        train()
    disk.names = names
    with depyf.prepare_debug(tmp_path):
        train(other_function)
    first, stale = messages()
    assert "No space left on device" in first
    assert f"{', '.join(names)} in {tmp_path} could not be replaced" in stale
    note = tmp_path / "index_is_not_up_to_date.txt"
    assert note.read_text().startswith(f"{', '.join(names)} could not be written")
    told = f"full_code_for_{other_function.__name__}"  # the page has the text of this file as well
    assert all(told not in (tmp_path / name).read_text() for name in names)
    disk.names = ()
    if again == "the next session":
        with depyf.prepare_debug(tmp_path):
            train(lambda x, y: x * y)
    else:
        capture._flush_all()
    assert all(told in (tmp_path / name).read_text() for name in OF_THE_RUN)
    assert from_json((tmp_path / "manifest.json").read_text()).failures == ()
    assert not note.exists()
    assert len(messages()) == 2


def test_what_fails_while_the_page_is_written_does_not_keep_it_from_being_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch, depyf.prepare_debug(tmp_path):
        train()
        patch.setattr(manifest, "page_stem", _raising)
        patch.setattr(manifest, "manifest_name", _raising)
        depyf.prepare_debug(tmp_path).__enter__().__exit__(None, None, None)
    capture._flush_all()
    assert (tmp_path / "index.html").exists()


def test_a_directory_that_is_removed_during_the_run(tmp_path: Path, messages: Callable[[], List[str]]) -> None:
    expected = plain()
    with depyf.prepare_debug(tmp_path / "dump"):
        train(lambda x, y: x * y)
        shutil.rmtree(tmp_path / "dump")
        assert train() == expected
    (message,) = messages()
    assert f"can't write to the dump directory {tmp_path / 'dump'}" in message


@pytest.mark.parametrize("kind", ["file", "read only", "a file above", "no current directory"])
def test_a_directory_that_can_not_be_used(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, messages: Callable[[], List[str]]
) -> None:
    expected = plain()
    (tmp_path / "file").write_text("the user's")
    (tmp_path / "read only").mkdir(mode=0o500)
    (tmp_path / "gone").mkdir()
    target = {"a file above": "file/below", "no current directory": "relative"}.get(kind, kind)
    if kind == "no current directory":
        monkeypatch.chdir(tmp_path / "gone")
        (tmp_path / "gone").rmdir()
        try:
            train()
        except SystemError as error:  # CPython 3.13.0: a module's missing attribute
            pytest.skip(f"this Python can't run the program there, with depyf or without: {error}")
    elif kind == "read only" and os.geteuid() == 0:
        pytest.skip("root may write anywhere")
    named = target if kind == "no current directory" else tmp_path / target
    with depyf.prepare_debug(named):
        assert train() == expected
    (message,) = messages()
    assert (
        f"can't write to the dump directory {tmp_path / target if kind != 'no current directory' else target}"
        in message
    )
    assert (tmp_path / "file").read_text() == "the user's"


def test_a_full_disk(tmp_path: Path, messages: Callable[[], List[str]]) -> None:
    """No file may grow beyond some size: those that are smaller are whole, the others are not there."""
    expected = plain()
    before = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        with depyf.prepare_debug(tmp_path):
            resource.setrlimit(resource.RLIMIT_FSIZE, (700, before[0][1]))
            assert train() == expected
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before[0])
        signal.signal(signal.SIGXFSZ, before[1])
    (message,) = messages()
    assert "make room" in message
    files = [path for path in tmp_path.iterdir() if path.is_file()]
    assert files
    for path in (each for each in files if each.suffix == ".py"):
        compile(path.read_text(), str(path), "exec")
    assert not list(tmp_path.glob("*/*.writing"))


class Hostile:
    """An object of the user's that answers no question, and counts them."""

    asked: ClassVar[List[str]] = []

    def __init__(self) -> None:
        self.scale = 2.0

    def _refuse(self, name: str) -> Any:
        Hostile.asked.append(name)
        raise ValueError(f"no {name}")

    def __repr__(self) -> str:
        return str(self._refuse("repr"))

    def __str__(self) -> str:
        return str(self._refuse("str"))

    def __eq__(self, other: object) -> bool:
        return bool(self._refuse("eq"))

    def __hash__(self) -> int:
        return int(self._refuse("hash"))

    def __bool__(self) -> bool:
        return bool(self._refuse("bool"))

    def __len__(self) -> int:
        return int(self._refuse("len"))

    def __format__(self, spec: str) -> str:
        return str(self._refuse("format"))


HOSTILE = Hostile()


def test_hostile_objects_of_the_user_are_not_asked(tmp_path: Path, messages: Callable[[], List[str]]) -> None:
    hostile, class_of_it = Hostile(), Hostile

    def function(x: Any, y: Any, default: Any = hostile) -> Any:
        table = [hostile, HOSTILE]
        z = x * default.scale + y * HOSTILE.scale
        torch._dynamo.graph_break()
        return z * len(table) if isinstance(table[0], class_of_it) else z

    Hostile.asked.clear()
    try:
        expected = train(function)
    except torch._dynamo.exc.InternalTorchDynamoError:
        pytest.skip("this PyTorch itself fails when such an object is compiled: it hashes it")
    without_us = list(Hostile.asked)
    torch._dynamo.reset()
    Hostile.asked.clear()
    with depyf.prepare_debug(tmp_path):
        assert train(function) == expected
    assert Hostile.asked == without_us
    assert messages() == []
    assert "def __guard_" in next(tmp_path.glob("full_code_for_function_*.py")).read_text()


def test_a_copy_of_a_kernel_that_can_not_be_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, messages: Callable[[], List[str]]
) -> None:
    from torch._inductor.codecache import PyCodeCache

    (tmp_path / "kernel.py").write_text("def call(args):\n    return args\n")
    loaded = []

    def backend(module: Any, example: Any) -> Any:
        write = DumpDirectory.write
        with monkeypatch.context() as patched:
            patched.setattr(DumpDirectory, "write", lambda *args: (write(*args) or "") + ".gone")
            loaded.append(PyCodeCache.load_by_key_path("depyf_test_failures", str(tmp_path / "kernel.py")))
        return module.forward

    with depyf.prepare_debug(tmp_path / "dump"):
        train(backend=backend)
    assert {module.__file__ for module in loaded} == {str(tmp_path / "kernel.py")}
    (message,) = messages()
    assert "FileNotFoundError" in message
    assert "loading an Inductor kernel from the dump" in message


def at_each_depth(function: Callable[[], object], kind: type) -> List[int]:
    """How many calls below the recursion limit ``function`` raises ``kind``."""

    def deep(calls: int, called: Callable[[], object]) -> None:
        if calls:
            deep(calls - 1, called)
        else:
            called()

    found = []
    room = 0
    with contextlib.suppress(RecursionError):
        while True:
            room += 1
            deep(room, dict)
    for left in range(-2, 120):
        try:
            deep(room - left, function)
        except kind:
            found.append(left)
        except (RecursionError, KeyboardInterrupt):
            pass
    return found


def test_a_hook_survives_wherever_a_function_that_does_nothing_does(messages: Callable[[], List[str]]) -> None:
    def nothing(*args: object, **kwargs: object) -> None: ...

    def work(*args: object, **kwargs: object) -> int:
        return sum(len([each]) for each in ([0],)) + int("1")

    hook = safely.safely("working")(work)
    assert at_each_depth(lambda: hook(1, key=2), RecursionError) == at_each_depth(
        lambda: nothing(1, key=2), RecursionError
    )
    assert hook(1) == 2
    with depyf.trace():
        pass
    told = [message for message in messages() if message.startswith("working failed")]
    assert told
    # Python 3.8 lends more calls to who handles a RecursionError: they may be enough to report it at once.
    assert any("setrecursionlimit" in message for message in told) or sys.version_info < (3, 9)


def test_ctrl_c_reaches_the_program_where_no_stack_is_left() -> None:
    raised: List[int] = []
    error = KeyboardInterrupt()

    def interrupted() -> None:
        raised.extend((1,))
        error.__traceback__ = error.__context__ = None
        raise error

    found = at_each_depth(safely.safely("working")(interrupted), KeyboardInterrupt)
    assert len(found) == len(raised) > 100

    def fails() -> None:
        raise ValueError("mine")

    def handling() -> None:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            safely.safely("working")(fails)()

    assert at_each_depth(handling, KeyboardInterrupt) == []
