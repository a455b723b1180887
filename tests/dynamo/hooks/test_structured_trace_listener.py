"""Records of the structured trace as events."""

from __future__ import annotations

import logging
from typing import Tuple

import pytest

from depyf.dynamo.hooks import patching, safely
from depyf.dynamo.hooks.structured_trace_listener import TraceHandler
from depyf.torch_trace.events import Event, event_of


def test_the_same_thing_has_the_same_name_as_artifact_and_as_kind_of_its_own() -> None:
    context = {"frame_id": 1, "frame_compile_id": 2, "attempt": 1, "has_payload": "hash"}
    cold = event_of({"artifact": {"name": "inductor_post_grad_graph"}, **context}, "text", 1.0)
    warm = event_of({**context, "inductor_post_grad_graph": {}}, "text", 1.0)
    assert cold is not None
    assert warm is not None
    assert (cold.name, cold.compile_id, cold.attempt) == (warm.name, warm.compile_id, warm.attempt)
    assert (cold.name, cold.compile_id, cold.attempt) == ("inductor_post_grad_graph", "1/2", 1)


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ({"frame_id": 0, "frame_compile_id": 0}, "0/0"),
        ({"compiled_autograd_id": 3, "frame_id": 1, "frame_compile_id": 2}, "!3/1/2"),
        ({"compiled_autograd_id": 3}, "!3"),
        ({}, None),
    ],
)
def test_compile_ids_are_spelled_as_torch_spells_them(record: dict[str, int], expected: str) -> None:
    event = event_of({"dynamo_start": {}, **record}, None, 0.0)
    assert event is not None
    assert event.compile_id == expected


def test_bulky_kinds_are_left_out() -> None:
    assert event_of({"describe_tensor": {}}, None, 0.0) is None


def test_a_receiver_that_fails_is_reported_and_not_felt(caplog: pytest.LogCaptureFixture) -> None:
    def receive(event: Event) -> None:
        raise ValueError("broken receiver")

    record = logging.LogRecord("torch.__trace", logging.DEBUG, "", 0, "", None, None)
    record.metadata, record.payload = {"dynamo_start": {}}, None
    safely._reported.clear()
    with caplog.at_level(logging.WARNING, "depyf"):
        TraceHandler(receive).handle(record)
        TraceHandler(receive).handle(record)
    (message,) = [record.message for record in caplog.records]
    assert message.startswith("reading torch's structured trace failed at ")
    assert " at depyf/dynamo/hooks/structured_trace_listener.py:" in message
    assert "(ValueError: broken receiver)" in message
    assert "Your program continues" in message
    assert "please report" in message


def test_an_attribute_that_somebody_else_has_replaced_since_is_left_alone() -> None:
    class Owner:
        value = 1

    undo = patching.replace_attribute(Owner, "value", 2)
    Owner.value = 3
    undo()
    assert Owner.value == 3


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (0, 2, 1), (1, 2, 0)])
def test_replacements_undone_in_any_order_leave_nothing_behind(order: Tuple[int, ...]) -> None:
    class Owner:
        @staticmethod
        def call() -> None: ...

    before, heard = vars(Owner)["call"], []
    ends = [patching.call_before(Owner, "call", lambda number=number: heard.append(number)) for number in range(3)]
    left = {0, 1, 2}
    for number in order:
        ends[number]()
        left.discard(number)
        heard.clear()
        Owner.call()
        assert set(heard) == left
    assert vars(Owner)["call"] is before
    assert not [each for each in patching._covered if each[0] is Owner]


def test_an_inherited_attribute_is_inherited_again() -> None:
    class Base:
        value = 1

    class Owner(Base):
        pass

    undo = patching.replace_attribute(Owner, "value", 2)
    assert (Owner.value, Base.value) == (2, 1)
    undo()
    assert "value" not in vars(Owner)
