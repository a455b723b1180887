"""depyf.base.restoring restores even if an exception from outside is raised at any line of the restoring."""

from __future__ import annotations

import gc
import sys
from types import FrameType
from typing import Any, Callable, List

import pytest

from depyf.base import restoring as module
from depyf.base.restoring import restoring
from depyf.base.without_collector import without_collector
from depyf.base.without_warnings import without_warnings


class Interruption(Exception):
    """Raised at a line, as a signal handler may."""


def interrupted_at_each_line(program: Callable[[], None], *files: str) -> List[int]:
    """Run ``program`` once for each line (of ``files``) that it executes, with an exception at that line, until no line
    is left. Returns the number of lines before each run's interruption."""
    runs = []
    while True:
        executed = 0

        def trace(frame: FrameType, event: str, _argument: object) -> Any:
            nonlocal executed
            if frame.f_code.co_filename not in files:
                return None
            if event == "line":
                executed += 1
                if executed == len(runs) + 1:
                    raise Interruption
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            program()
        except Interruption:
            runs.append(executed)
        else:
            return runs
        finally:
            sys.settrace(before)


def test_one_interruption_at_any_line_leaves_nothing_changed() -> None:
    state = ["before"]

    def restore() -> None:
        state[:] = ["before"]

    def program() -> None:
        with restoring(restore) as again, again:
            state[:] = ["changed"]

    def checked() -> None:
        try:
            program()
        finally:
            assert state == ["before"]

    assert len(interrupted_at_each_line(checked, module.__file__)) >= 8


def test_entered_once_it_is_not_enough() -> None:
    state = ["before"]

    def program() -> None:
        with restoring(lambda: state.append("restored")):
            state.append("changed")

    outcomes = set()

    def checked() -> None:
        state[:] = ["before"]
        try:
            program()
        finally:
            outcomes.add(state[-1])

    interrupted_at_each_line(checked, module.__file__)
    assert "changed" in outcomes  # interrupted on the first line of __exit__


def test_it_is_restored_once_without_an_interruption() -> None:
    calls = []
    with restoring(lambda: calls.append(1)) as again, again:
        assert calls == []
    assert calls == [1]


def test_what_the_block_raises_is_passed_on() -> None:
    calls = []
    with pytest.raises(KeyError), restoring(lambda: calls.append(1)) as again, again:
        raise KeyError
    assert calls == [1]


@pytest.mark.parametrize("context", [without_collector, without_warnings])
def test_contexts_of_depyf_restore_after_an_interruption_at_any_line(context: Any) -> None:
    import warnings

    source = sys.modules[context.__module__].__file__
    filters, enabled = list(warnings.filters), gc.isenabled()

    def checked() -> None:
        try:
            with context():
                pass
        finally:
            assert (warnings.filters, gc.isenabled()) == (filters, enabled)

    assert enabled
    assert len(interrupted_at_each_line(checked, module.__file__, str(source))) >= 5


def test_at_the_limit_of_the_stack_nothing_is_changed_that_can_not_be_restored() -> None:
    changes: List[str] = []

    def deeper() -> None:
        with restoring(lambda: changes.append("restored")) as again, again:
            changes.append("changed")
        deeper()

    with pytest.raises(RecursionError):
        deeper()
    assert changes.count("changed") == changes.count("restored") > 10
