"""``debug``: pause the program, and compile nothing new while it is looked at."""

from __future__ import annotations

import contextlib
from types import TracebackType
from typing import Any, ContextManager, Iterator, Optional, Type

from depyf.dynamo import compat
from depyf.dynamo.capture import capture
from depyf.dynamo.patching import replace_attribute


class Debug:
    """The context manager that ``debug`` returns. Entering it stops in the debugger, once."""

    def __init__(self) -> None:
        compat.require_torch("debug")
        self._no_compilation: Optional[ContextManager[Any]] = None

    def __enter__(self) -> Debug:
        if capture.current() is not None:
            raise RuntimeError("depyf.debug() can't be used inside depyf.prepare_debug(): leave that first")
        self._no_compilation = without_compilation()
        self._no_compilation.__enter__()
        dumped = capture.last_directory
        where = f"the dump is in {dumped}" if dumped else "nothing was dumped: use depyf.prepare_debug first"
        print(f"depyf pauses the program here; {where}. Set breakpoints in its files, then continue.")
        try:
            breakpoint()
        except BaseException:  # the debugger was quit: the ``with`` statement will not call __exit__
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        exc_type: Optional[Type[BaseException]],
        exc_value: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        if self._no_compilation is not None:
            self._no_compilation.__exit__(exc_type, exc_value, traceback)
            self._no_compilation = None


def debug() -> Debug:
    """A context manager for looking at what ``prepare_debug`` dumped.

    On entry it prints where the dump is and calls ``breakpoint()``. Inside, compiled code runs where there is some and
    nothing new is compiled by Dynamo. Entering it inside ``prepare_debug`` raises ``RuntimeError``.

    Raises ``ImportError`` when PyTorch is not installed.
    """
    return Debug()


def without_compilation() -> ContextManager[Any]:
    """A context in which Dynamo runs what it has compiled, and the rest as plain Python."""
    set_stance = compat.find("torch.compiler", "set_stance")
    return _run_only() if set_stance is None else set_stance("eager_on_recompile")


@contextlib.contextmanager
def _run_only() -> Iterator[None]:
    """The same for a torch without stances: every callback that Dynamo would set means "run only"."""
    eval_frame = compat.module("torch._dynamo.eval_frame")
    original = eval_frame.set_eval_frame

    def set_eval_frame(callback: Any) -> Any:
        return original(False if callable(callback) else callback)

    names = [name for name, value in vars(eval_frame).items() if value is original]  # some versions have an alias
    undos = [replace_attribute(eval_frame, name, set_eval_frame) for name in names]
    try:
        yield
    finally:
        for undo in undos:
            undo()
