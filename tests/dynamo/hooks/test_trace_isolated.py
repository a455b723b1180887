"""A description that PyTorch makes only for depyf does not fail the compilation when it can't be made."""

from __future__ import annotations

import contextlib
import inspect
import json
import logging
import re
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

import depyf  # noqa: E402
from depyf.dynamo.hooks import private_names, torch_names  # noqa: E402
from depyf.dynamo.hooks.structured_trace_listener import TRACE_LOGGER, listen  # noqa: E402
from depyf.torch_trace.events import PHASE, Event  # noqa: E402
from depyf.torch_trace.events import UNREAD as UNREAD_KINDS  # noqa: E402

UNREAD = UNREAD_KINDS | {"torch._functorch.config"}

needs_trace = pytest.mark.skipif(
    torch_names.find("torch._logging._internal", "trace_structured") is None,
    reason="this PyTorch has no structured trace",
)


def nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take away the handlers of pytest's, which reads all loggers that do not pass on what they get, in each phase."""
    monkeypatch.setattr(logging.getLogger(TRACE_LOGGER), "handlers", [])


class _Meta(type):
    def __repr__(cls) -> str:
        raise ValueError("hostile")


class _Hostile(metaclass=_Meta):
    value = 2


class _Module(torch.nn.Module):  # type: ignore[misc, name-defined]
    def forward(self, x: Any) -> Any:
        return x + getattr(self, "\udcff")


def run(kind: str) -> Any:
    torch._dynamo.reset()
    if kind == "attribute":
        module = _Module()
        setattr(module, "\udcff", 2)
        return torch.compile(module, backend="eager")(torch.ones(2)).tolist()
    hostile = _Hostile()
    return torch.compile(lambda x: x + hostile.value, backend="eager")(torch.ones(2)).tolist()


def outcome(kind: str) -> Any:
    """Return the result, or what PyTorch raises: 2.11 writes the class itself into a guard."""
    try:
        return run(kind)
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("kind", ["attribute", "class"])
def test_a_program_that_torch_can_not_describe_compiles_with_depyf_as_without(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody_listens(monkeypatch)
    expected = outcome(kind)
    with depyf.prepare_debug(tmp_path):
        assert outcome(kind) == expected
    assert isinstance(expected, tuple) or list(tmp_path.glob("__transformed_code_0_*"))


@needs_trace
def test_what_torch_can_not_report_is_said_and_goes_on_only_to_those_who_listen_themselves(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody_listens(monkeypatch)
    internal = torch_names.module("torch._logging._internal")
    original = internal.trace_structured
    received: List[Any] = []
    parameters = inspect.signature(original).parameters
    untraced = {"expect_trace_id": False} if "expect_trace_id" in parameters else {}  # since PyTorch 2.6

    def fails() -> str:
        raise UnicodeEncodeError("utf-8", "\udcff", 0, 1, "hostile")

    first, second = listen(received.append), listen(received.append)
    try:
        with caplog.at_level(logging.WARNING, "depyf"):
            internal.trace_structured("something", payload_fn=fails, **untraced)
        first()
        internal.trace_structured("something", payload_fn=fails, **untraced)  # one of ours still listens
        other = logging.NullHandler()
        logging.getLogger(TRACE_LOGGER).addHandler(other)
        with pytest.raises(UnicodeEncodeError):
            internal.trace_structured("something", payload_fn=fails, **untraced)
        logging.getLogger(TRACE_LOGGER).removeHandler(other)
    finally:
        first()
        second()
    assert internal.trace_structured is original
    assert any("having PyTorch report something" in record.getMessage() for record in caplog.records)


@contextlib.contextmanager
def heard(monkeypatch: pytest.MonkeyPatch, *, programs: bool) -> Iterator[List[Event]]:
    """Receive what torch reports, alone or beside a listener of the program's."""
    torch._dynamo.reset()
    nobody_listens(monkeypatch)
    logger, theirs = logging.getLogger(TRACE_LOGGER), logging.NullHandler()
    received: List[Event] = []
    if programs:
        logger.addHandler(theirs)
    undo = listen(received.append)
    try:
        yield received
    finally:
        undo()
        logger.removeHandler(theirs)


@needs_trace
def test_phases_are_the_same_whether_the_program_listens_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Alone, depyf is handed phases without torch's records of them."""

    def phases(*, programs: bool) -> List[Any]:
        with heard(monkeypatch, programs=programs) as received:
            torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
        found = [
            (each.meta if each.payload is None else json.loads(each.payload), each)
            for each in received
            if each.name == PHASE
        ]
        assert programs or all(each.payload is None for _, each in found)  # text that nobody would read
        return [
            (data["ph"], data["name"], (each.compile_id or "").rpartition("/")[2], each.attempt)
            for data, each in found
            if data["ph"] in "BE"
        ]

    alone = phases(programs=False)
    assert alone == phases(programs=True)
    assert len(alone) > 4 or not alone  # a PyTorch that has no phases


def events(monkeypatch: pytest.MonkeyPatch, *, programs: bool) -> List[Event]:
    """Compile a function with a break and a recompilation; return what torch reports of it, without phases."""

    def function(x: Any, factor: int) -> Any:
        x = x * factor
        torch._dynamo.graph_break()
        return x.sin()

    with heard(monkeypatch, programs=programs) as received:
        compiled = torch.compile(function, backend="aot_eager", dynamic=False)
        for factor in (2, 3):
            compiled(torch.ones(2, requires_grad=True), factor).sum().backward()
    return [each for each in received if each.name != PHASE]


@needs_trace
def test_what_torch_reports_is_the_same_whether_the_program_listens_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Alone, depyf takes it from torch's functions, without torch's record of it."""

    def told(found: List[Event]) -> List[Any]:
        numbers: Dict[str, int] = {}
        graph = re.compile(r"__compiled_fn_\d+(_[0-9a-f_]+)?|0x[0-9a-f]+|[0-9.]+ us|\d{4,}")

        def text_of(payload: Optional[str]) -> Optional[str]:
            return None if payload is None else graph.sub("?", payload.partition("User code traceback")[0])

        return [
            (
                each.name,
                each.compile_id and numbers.setdefault(each.compile_id, len(numbers)),
                each.attempt,
                type(each.meta),
                text_of(each.payload),
            )
            for each in found
            if each.name not in UNREAD
        ]

    alone, beside = events(monkeypatch, programs=False), events(monkeypatch, programs=True)
    assert told(alone) == told(beside)
    assert len({each.compile_id for each in alone}) > 2
    assert not [each.name for each in alone if each.name in UNREAD]  # nor is their text made


@needs_trace
def test_what_is_not_text_is_written_as_torch_writes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def sent(*, programs: bool) -> List[Any]:
        nobody_listens(monkeypatch)
        if programs:
            logging.getLogger(TRACE_LOGGER).addHandler(logging.NullHandler())
        received: List[Event] = []
        undo = listen(received.append)
        try:
            trace = torch_names.module("torch._logging._internal").trace_structured
            trace("artifact", lambda: {"name": "one"}, payload_fn=lambda: {"a": [1, "x"]}, suppress_context=True)
            trace("artifact", lambda: {"name": "two"}, payload_fn=lambda: ["a", 2], suppress_context=True)
            trace("dynamo_start", suppress_context=True)
        finally:
            undo()
        return [(each.name, each.compile_id, each.attempt, each.meta, each.payload) for each in received]

    assert sent(programs=False) == sent(programs=True)


@needs_trace
def test_without_the_function_to_isolate_the_trace_stays_off(monkeypatch: pytest.MonkeyPatch) -> None:
    nobody_listens(monkeypatch)
    find = torch_names.PrivateName.find
    monkeypatch.setattr(
        torch_names.PrivateName,
        "find",
        lambda name: None if name is private_names.TRACE_STRUCTURED else find(name),
    )
    logger = logging.getLogger(TRACE_LOGGER)
    level = logger.level
    stop = listen(lambda event: None)
    try:
        assert (logger.handlers, logger.level) == ([], level)
    finally:
        stop()
