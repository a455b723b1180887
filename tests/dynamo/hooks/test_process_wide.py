"""Objects that the whole process shares are the same ones, in the same order, in and after a session."""

from __future__ import annotations

import builtins
import gc
import logging
import os
import random
import signal
import sys
import threading
import warnings
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Tuple
from unittest import mock

import pytest

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("fresh_dynamo")]
torch = pytest.importorskip("torch")

from torch_versions import HAS_GUARD_TREES  # noqa: E402

import depyf  # noqa: E402
from depyf.base import meta_path  # noqa: E402
from depyf.dynamo.hooks import debuggers, patching, private_names  # noqa: E402
from depyf.dynamo.hooks.structured_trace_listener import TRACE_LOGGER  # noqa: E402

TRACE = logging.getLogger(TRACE_LOGGER)

SHARED: Dict[str, Callable[[], Any]] = {
    "sys.meta_path": lambda: sys.meta_path,
    "sys.path_hooks": lambda: sys.path_hooks,
    "sys.path": lambda: sys.path,
    "sys.excepthook": lambda: sys.excepthook,
    "sys.unraisablehook": lambda: sys.unraisablehook,
    "sys.displayhook": lambda: sys.displayhook,
    "sys.breakpointhook": lambda: sys.breakpointhook,
    "sys.stdout": lambda: sys.stdout,
    "sys.stderr": lambda: sys.stderr,
    "sys.gettrace()": sys.gettrace,
    "sys.getprofile()": sys.getprofile,
    "threading.excepthook": lambda: threading.excepthook,
    "threading.enumerate()": lambda: list(map(id, threading.enumerate())),
    "warnings.filters": lambda: warnings.filters,
    "warnings.showwarning": lambda: warnings.showwarning,
    "logging's handlers": lambda: logging._handlerList,  # type: ignore[attr-defined]
    "logging's root handlers": lambda: logging.getLogger().handlers,
    "logging's record factory": logging.getLogRecordFactory,
    "logging's class of loggers": logging.getLoggerClass,
    # From 3.14 on ``logging`` itself makes a new list when a handler is removed.
    "the trace's handlers": lambda: TRACE.handlers if sys.version_info < (3, 14) else tuple(TRACE.handlers),
    "the trace's level": lambda: TRACE.level,
    "the trace's propagation": lambda: TRACE.propagate,
    "builtins.__import__": lambda: builtins.__import__,
    "builtins.print": lambda: builtins.print,
    "gc.isenabled()": gc.isenabled,
    "gc.callbacks": lambda: gc.callbacks,
    "os.environ": lambda: dict(os.environ),
    "os._exit": lambda: os._exit,
    "the handler of SIGINT": lambda: signal.getsignal(signal.SIGINT),
    "random's state": random.getstate,
    "torch's random state": lambda: torch.get_rng_state().tolist(),
    "torch._dynamo.reset": lambda: torch._dynamo.reset,
    "torch.fx.GraphModule.__init__": lambda: torch.fx.GraphModule.__init__,
    "torch's bytecode hooks": lambda: private_names.BYTECODE_HOOKS.find(),
    "torch.compile": lambda: torch.compile,
    "torch's grad mode": torch.is_grad_enabled,
}

CONTAINERS = ("sys.meta_path", "warnings.filters", "logging's handlers", "torch's bytecode hooks")
"""The same lists and tables during a session as well."""

ADDED_TO = {
    "sys.meta_path",
    "logging's handlers",
    "the trace's handlers",
    "the trace's level",
    "torch's bytecode hooks",
    "torch._dynamo.reset",
    "torch.fx.GraphModule.__init__",
}
"""What differs during a session."""


def state(name: str) -> Tuple[Any, Any]:
    """Return the object, and what it contains, by identity and in order."""
    shared = SHARED[name]()
    if isinstance(shared, dict) and name != "os.environ":
        return shared, [(key, id(value)) for key, value in shared.items()]
    if isinstance(shared, list) and name not in ("torch's random state", "threading.enumerate()"):
        return shared, list(map(id, shared))
    return shared, shared


def differing(before: Dict[str, Tuple[Any, Any]]) -> List[str]:
    found = []
    for name, (shared, content) in before.items():
        now, contains = state(name)
        plain = isinstance(shared, (int, tuple)) or "random" in name or name in ("os.environ", "threading.enumerate()")
        if contains != content or (not plain and now is not shared):
            found.append(name)
    return found


def compile_once() -> None:
    torch.compile(lambda x: x.sin() + 1, backend="aot_eager")(torch.ones(2, requires_grad=True)).sum().backward()


@pytest.fixture(autouse=True)
def nothing_left_over() -> Iterator[None]:
    compile_once()  # what PyTorch itself does at the first compilation
    torch._dynamo.reset()
    gc.collect()
    yield
    meta_path.remove()
    assert not meta_path._present


def test_shared_objects_are_the_same_after_a_session(tmp_path: Path) -> None:
    with depyf.prepare_debug(tmp_path / "first"):  # depyf imports the rest of itself
        compile_once()
    gc.collect()
    before = {name: state(name) for name in SHARED}
    with depyf.prepare_debug(tmp_path):
        compile_once()
        inside = [name for name in CONTAINERS if SHARED[name]() is not before[name][0]]
        inside += [name for name in differing(before) if name not in ADDED_TO]
    gc.collect()
    assert differing(before) == []
    assert inside == []


def _filters() -> List[Any]:
    return [(each[0], each[2]) for each in warnings.filters]


def test_a_finder_that_the_program_adds_to_the_list_it_holds_is_asked(tmp_path: Path) -> None:
    held, asked = sys.meta_path, []

    class Finder:
        def find_spec(self, name: str, _path: object = None, _target: object = None) -> None:
            asked.append(name)

    finder: Any = Finder()
    try:
        with depyf.prepare_debug(tmp_path):
            held.insert(0, finder)
        assert sys.meta_path is held
        assert held[0] is finder
        with pytest.raises(ImportError):
            __import__("no_module_of_depyfs_tests")
        assert asked == ["no_module_of_depyfs_tests"]
    finally:
        held[:] = [each for each in held if each is not finder]


def test_a_filter_that_the_program_adds_stays_where_it_was_added(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        held = warnings.filters
        with depyf.prepare_debug(tmp_path):
            warnings.filterwarnings("error", category=BytesWarning)
            compile_once()
            inside = _filters()  # PyTorch 2.2 adds one in front of the program's
        assert warnings.filters is held
        assert _filters() == inside
        assert ("error", BytesWarning) in inside


@pytest.mark.parametrize("level", [logging.DEBUG, logging.ERROR])
def test_a_level_that_is_set_meanwhile_stays(tmp_path: Path, level: int) -> None:
    before = TRACE.level
    TRACE.setLevel(logging.WARNING)
    try:
        with depyf.prepare_debug(tmp_path):
            TRACE.setLevel(level)
        assert TRACE.level == level
    finally:
        TRACE.setLevel(before)


@pytest.mark.skipif(not HAS_GUARD_TREES, reason="in PyTorch before 2.4 watch listens to other records")
def test_sessions_that_overlap_restore_the_level(tmp_path: Path) -> None:
    before = TRACE.level
    first, second = depyf.prepare_debug(tmp_path / "1"), depyf.watch()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert TRACE.level == logging.DEBUG
    second.__exit__(None, None, None)
    assert TRACE.level == before


@pytest.mark.parametrize("hook", ["excepthook", "displayhook", "breakpointhook", "unraisablehook"])
def test_a_hook_of_sys_that_is_set_meanwhile_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hook: str) -> None:
    def theirs(*_arguments: object) -> None: ...

    with depyf.prepare_debug(tmp_path):
        monkeypatch.setattr(sys, hook, theirs)
        compile_once()
    assert getattr(sys, hook) is theirs


def test_a_handler_of_the_trace_that_is_added_meanwhile_stays_first(tmp_path: Path) -> None:
    theirs, before = logging.NullHandler(), list(TRACE.handlers)
    with depyf.prepare_debug(tmp_path):
        TRACE.handlers.insert(0, theirs)
    try:
        assert TRACE.handlers == [theirs, *before]
    finally:
        TRACE.removeHandler(theirs)


def test_a_bytecode_hook_that_is_registered_meanwhile_stays(tmp_path: Path) -> None:
    called: List[object] = []
    before = list(private_names.BYTECODE_HOOKS.require().values())
    with depyf.prepare_debug(tmp_path):
        handle = torch._dynamo.convert_frame.register_bytecode_hook(lambda old, new: called.append(old))
    try:
        compile_once()
        assert called
        assert len(private_names.BYTECODE_HOOKS.require()) == len(before) + 1
    finally:
        handle.remove()


def test_reset_is_pytorchs_own_again_after_a_mock_that_outlives_the_session(tmp_path: Path) -> None:
    original = torch._dynamo.reset
    patch = mock.patch("torch._dynamo.reset")
    with depyf.prepare_debug(tmp_path):
        mocked = patch.start()
        torch._dynamo.reset()
    assert torch._dynamo.reset is mocked
    assert mocked.call_count == 1
    patch.stop()  # this restores what it found: depyf's
    torch._dynamo.reset()
    assert torch._dynamo.reset is original
    assert not [each for each in patching._covered if each[1] == "reset"]


def test_a_mock_inside_of_a_session_leaves_reset_as_it_was(tmp_path: Path) -> None:
    original = torch._dynamo.reset
    with depyf.prepare_debug(tmp_path):
        with mock.patch("torch._dynamo.reset"):
            torch._dynamo.reset()
        compile_once()
        torch._dynamo.reset()
    assert torch._dynamo.reset is original
    assert any("sin" in path.read_text() for path in tmp_path.glob("full_code*")), "the second one was seen"


def test_a_backward_does_not_list_its_thread() -> None:
    found: List[Tuple[bool, int]] = []

    def of_no_thread_of_pythons() -> None:
        found.append((debuggers._is_foreign(), threading.active_count()))

    count = threading.active_count()
    import _thread

    done = threading.Event()
    _thread.start_new_thread(lambda: (of_no_thread_of_pythons(), done.set()), ())
    assert done.wait(60)
    assert found == [(True, count)]
    assert not debuggers._is_foreign()
