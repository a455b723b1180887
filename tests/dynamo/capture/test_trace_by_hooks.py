"""Events that an older PyTorch does not log: the functions that report them still exist in this one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, List

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from depyf.dynamo.capture.trace_by_hooks import _Hooks, supplement  # noqa: E402
from depyf.dynamo.hooks import structured_trace_listener  # noqa: E402
from depyf.dynamo.hooks.private_names import EVENT_SENDERS  # noqa: E402
from depyf.dynamo.hooks.torch_names import PrivateName  # noqa: E402
from depyf.torch_trace.breaks import break_report  # noqa: E402
from depyf.torch_trace.events import Event  # noqa: E402


def broken(x: Any) -> Any:
    y = x + 1
    torch._dynamo.graph_break()
    return y * 2


def test_graphs_and_breaks_are_told_and_the_hooks_are_gone_afterwards() -> None:
    events: List[Event] = []
    hooks = _Hooks(events.append)
    formatter = torch._dynamo.output_graph.lazy_format_graph_code
    undo = [hooks.graphs(), hooks.graph_breaks()]
    try:
        torch._dynamo.reset()
        torch.compile(broken, backend="aot_eager")(torch.ones(2, requires_grad=True)).sum().backward()
    finally:
        for each in reversed(undo):
            assert each is not None
            each()
    told = {event.name: event for event in events}
    assert {"dynamo_output_graph", "aot_joint_graph", "aot_forward_graph", "aot_backward_graph"} <= set(told)
    assert "aten.mul" in str(told["aot_forward_graph"].payload)
    assert all(event.compile_id is not None for event in events)
    found = break_report(told["dynamo_graph_break_reason"])
    assert (found.filename, found.line) == (__file__, broken.__code__.co_firstlineno + 2)
    assert "graph_break" in found.reason
    assert torch._dynamo.output_graph.lazy_format_graph_code is formatter
    count = len(events)
    torch._dynamo.reset()
    torch.compile(broken, backend="eager")(torch.ones(2))
    assert len(events) == count


def test_reasons_of_a_recompilation_wait_for_the_id_of_the_compilation() -> None:
    events: List[Event] = []
    hooks = _Hooks(events.append)
    code = broken.__code__
    hooks._thread.reasons = ((code.co_name, code.co_filename, code.co_firstlineno), ["L['x'] is smaller"])
    hooks._send_reasons(SimpleNamespace(co_name="other", co_filename="", co_firstlineno=1))
    hooks._send_reasons(
        SimpleNamespace(co_name=code.co_name, co_filename=code.co_filename, co_firstlineno=code.co_firstlineno)
    )
    assert events == []  # another frame was compiled first: the one they are about was given up
    hooks._thread.reasons = (("broken", code.co_filename, code.co_firstlineno), ["L['x'] is smaller"])
    hooks._send_reasons(
        SimpleNamespace(co_name="broken", co_filename=code.co_filename, co_firstlineno=code.co_firstlineno)
    )
    assert [(event.name, event.payload) for event in events] == [("recompile_reasons", "[\"L['x'] is smaller\"]")]


def test_what_the_trace_has_is_not_told_twice() -> None:
    assert structured_trace_listener.reports(EVENT_SENDERS["dynamo_output_graph"]) == hasattr(
        torch._logging._internal, "trace_structured"
    )
    assert not structured_trace_listener.reports(PrivateName("torch._dynamo.output_graph", "no_such_event", ""))
    assert structured_trace_listener.reports(PrivateName("torch._dynamo.no_such_module", "no_such_event", ""))


def test_the_event_of_each_hook_has_its_sender_in_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: List[str] = []

    def reports(row: PrivateName) -> bool:
        asked.append(row.name)
        return True

    monkeypatch.setattr(structured_trace_listener, "reports", reports)
    try:
        undo_all = supplement(lambda event: None)
    except KeyError as error:
        pytest.fail(f"{error} needs a row in EVENT_SENDERS of dynamo/hooks/private_names.py")
    for undo in undo_all:
        undo()
    assert set(EVENT_SENDERS) == set(asked), "rows of EVENT_SENDERS that no hook of supplement() replaces"
