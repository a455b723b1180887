"""``depyf shadow --at N``: compare the compiled calls of one step of a program with eager mode, operation by operation.

The digests of two runs name the first step in which they part, and not the operation, as compiled code calls no
modules. So the program runs once more, and in that step ``compare`` looks at each call of a compiled function, with the
parameters, inputs and random numbers that the program has then. The calls before and after run as they would.
"""

from __future__ import annotations

from typing import List, Optional

from depyf.base.asynchronous import synchronous
from depyf.base.locks import Lock
from depyf.base.messages import describe
from depyf.base.without_collector import without_collector
from depyf.dynamo.hooks import frame_evaluation
from depyf.dynamo.hooks.compiled_callables import EnteredCall
from depyf.dynamo.hooks.hooked_context import install, uninstall
from depyf.dynamo.hooks.patching import Undo
from depyf.dynamo.hooks.safely import safely, say
from depyf.dynamo.questions.compare.question import compare_entered
from depyf.dynamo.questions.shadow.protected import handlers_called_later, what_sees_operations
from depyf.dynamo.questions.shadow.recorder import Recorder
from depyf.dynamo.questions.shadow.sampling import Sampler


class StepComparison:
    """Compares the calls of compiled functions in step ``number``, and prints what differs. With ``by_calls`` a step is
    the call of an outermost module or compiled function, as for programs without an optimizer."""

    def __init__(self, number: int, *, by_calls: bool) -> None:
        self._number = number
        self._by_calls = by_calls
        self._recorder = Recorder()
        self._sampler = Sampler(1, self._check)
        self._undo: List[Undo] = []
        self._lock = Lock()
        self._compared = self._wrong = self._failed = 0

    def begin(self) -> None:
        """Begin to count steps, as soon as torch is imported."""
        if not install(self._undo, "counting steps", self._recorder.install) or self._recorder.frames.was_ended:
            say(None, ["depyf shadow: a profiler runs, so steps are not counted, and nothing is compared"])

    def begin_compiler(self) -> None:
        """Begin to see calls of compiled functions, as soon as torch's compiler is imported."""
        frame_evaluation.keep_dynamo_out("depyf")
        self._recorder.install_compiler()
        install(self._undo, "beginning to compare", self._sampler.install)

    def end(self) -> None:
        """End, and say how far it looked."""
        uninstall(self._undo, "ending to compare")
        unit = "call" if self._by_calls else "step"
        if self._compared or self._failed:
            right = self._compared - self._wrong
            words = f"{right} right, {self._wrong} wrong, {self._failed} not compared"
            say(None, [f"depyf shadow: calls of compiled functions in {unit} {self._number}: {words}"])
            return
        made = self._recorder.calls if self._by_calls else self._recorder.steps
        say(
            None,
            [
                f"depyf shadow: no compiled function was called in {unit} {self._number} (counted from 0): the program "
                f"made {made} {unit}s"
            ],
        )

    @safely("comparing a call of a compiled function")
    def _check(self, call: EnteredCall) -> None:
        present = self._recorder.calls - 1 if self._by_calls else self._recorder.steps
        if present != self._number:
            return
        with self._lock:
            was_busy, self._recorder.busy = self._recorder.busy, True
        if was_busy:  # a compiled function that a comparison calls
            return
        try:
            self._compare(call)
        finally:
            self._recorder.busy = False

    def _compare(self, call: EnteredCall) -> None:
        reason: Optional[str] = what_sees_operations()
        name = getattr(call.function, "__qualname__", type(call.function).__name__)
        if not reason:
            try:
                with handlers_called_later(), without_collector():
                    found = compare_entered(call)
                if found is not None and (found.same or found.stage is not None or found.entry is not None):
                    self._compared += 1
                    self._wrong += not found.same
                    say(None, [f"depyf shadow: {found}"])
                    return
                reason = "it runs no Python function" if found is None else str(found)
            except synchronous() as error:  # what the function raises in eager mode, and what can't be copied
                reason = describe(error)
        self._failed += 1
        say(None, [f"depyf shadow: a call of {name} is not compared: {reason}"])
