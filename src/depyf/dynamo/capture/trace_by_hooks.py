"""Events that an older PyTorch's structured trace lacks, taken from calls of its functions. Before 2.3 there is no
trace at all, but every graph is formatted for the logs, whether these are on or not, so a hook of the formatter gets
all of them. Graph breaks, recompilations, Inductor's passes and the end of each compilation go through one function
each. The events have the names of later versions.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import re
import sys
import threading
import time
import traceback
from typing import TYPE_CHECKING, Any, Callable, Iterable, List, Optional, Sequence

from depyf.base.own_builtins import keep_builtins
from depyf.dynamo.hooks import compile_ids, private_names, structured_trace_listener, torch_names
from depyf.dynamo.hooks.late_modules import when_imported
from depyf.dynamo.hooks.patching import Undo, call_before, registered, replace_attribute, replace_everywhere
from depyf.dynamo.hooks.readable_graphs import readable_text
from depyf.dynamo.hooks.safely import safely
from depyf.dynamo.hooks.torch_types import DynamoFrame
from depyf.dynamo.store.names import compiled_fn_number
from depyf.torch_trace.events import FORWARD_METRICS, GRAPH_BREAK, RECOMPILATION, Event
from depyf.torch_trace.stages import Stage

keep_builtins(globals())

if TYPE_CHECKING:
    import torch

Receive = Callable[[Event], object]

Printed = Callable[[str, "torch.fx.GraphModule"], object]
"""Called with the title of a graph that is formatted for the logs, and the graph."""

_PRINTED = {stage.facts.printed_as: stage for stage in Stage if stage.facts.printed_as}
"""The stage of a graph, by the title that the formatter is given."""

_COMPILED_AUTOGRAD = "Compiled autograd graph"
"""This title has no stage: the trace has the graph as ``compiled_autograd_graph``."""

_FROM_PASSES = (Stage.BEFORE_PRE_GRAD, Stage.AFTER_PRE_GRAD)
"""Their graphs come from a hook around the passes (``first_passes``)."""


def _ignore(title: str, module: torch.fx.GraphModule) -> None:
    pass


def supplement(receive: Receive, printed: Printed = _ignore) -> List[Undo]:
    """Start to send the events that this torch's trace lacks to ``receive``, and every graph that is formatted for the
    logs to ``printed``; return the functions that stop it.
    """
    hooks = _Hooks(receive, printed)
    registered(hooks.end)
    substitutes = [
        (Stage.BEFORE_PRE_GRAD.record, hooks.first_passes),
        (Stage.BEFORE_POST_GRAD.record, hooks.last_passes),
        (GRAPH_BREAK, hooks.graph_breaks),
        (FORWARD_METRICS, hooks.ends),
        (RECOMPILATION, hooks.recompilations),  # its reasons come before the end
    ]
    # A feature is known by the event's name in the source of the module that would send it, never by a version.
    installed = [
        install()
        for event, install in substitutes
        if not structured_trace_listener.reports(private_names.EVENT_SENDERS[event])
    ]
    # Graphs that are in the trace would come twice; then only graphs that passes and backends print are sent.
    traced = structured_trace_listener.reports(private_names.EVENT_SENDERS[Stage.CAPTURED.record])
    installed.append(hooks.printed_graphs() if traced else hooks.graphs())
    return [undo for undo in [*installed, hooks.end] if undo is not None]


_FIRST_PASSES = (private_names.RECURSIVE_PRE_GRAD_PASSES, private_names.PRE_GRAD_PASSES)
_LAST_PASSES = (private_names.RECURSIVE_POST_GRAD_PASSES, private_names.POST_GRAD_PASSES)
"""The first of each calls itself for the graphs in a graph; older versions have only the other."""


class _Hooks:
    """Each method installs one hook, and returns its undo function, or None if this torch lacks the function."""

    def __init__(self, receive: Receive, printed: Printed = _ignore) -> None:
        self._receive, self._printed = receive, printed
        self._thread = threading.local()

    def end(self) -> None:
        """Send nothing more, even if other code has wrapped a hook and still calls it."""
        self._receive, self._printed = (lambda event: None), _ignore

    def _send(self, name: str, meta: object, payload: Optional[str]) -> None:
        self._receive(
            Event(name, compile_ids.current_compile_id(), compile_ids.current_attempt(), meta, payload, time.time())
        )

    @safely("reading a graph that torch formats for its logs")
    def _send_graph(self, name: Optional[str], module: torch.fx.GraphModule) -> None:
        if name is not None:
            self._send(name, {}, readable_text(module))

    def graphs(self) -> Optional[Undo]:
        """Send the graphs: captured, joint, forward, backward, after Inductor's last passes; and what others print."""
        return self._formatted(lambda title: _event_of_graph(title) or title)

    def printed_graphs(self) -> Optional[Undo]:
        """Send the graphs that passes and backends print, and that the trace lacks: no logs need to be on for that."""
        return self._formatted(lambda title: None if _in_trace(title) else title)

    def _formatted(self, event_of: Callable[[str], Optional[str]]) -> Optional[Undo]:
        original = private_names.FORMAT_GRAPH.find_or_report()
        if original is None:
            return None

        @functools.wraps(original)
        def lazy_format_graph_code(name: str, gm: torch.fx.GraphModule, *args: object, **kwargs: object) -> object:
            # It is called for every graph, and returns an object that formats the graph if a log wants it.
            if hasattr(gm, "print_readable"):  # None for a graph that no module owns
                self._printed(str(name), gm)
                self._send_graph(event_of(str(name)), gm)
            return original(name, gm, *args, **kwargs)

        # Modules that are imported later import it from its own module, so these are searched at the end, too.
        return replace_everywhere(private_names.FORMAT_GRAPH.name, original, lazy_format_graph_code)

    def first_passes(self) -> Optional[Undo]:
        """Send the graphs before and after Inductor's first passes."""
        return _with_inductor(lambda: self._around_passes(_FIRST_PASSES, *(stage.record for stage in _FROM_PASSES)))

    def last_passes(self) -> Optional[Undo]:
        """Send the graphs before Inductor's last passes."""
        return _with_inductor(lambda: self._around_passes(_LAST_PASSES, Stage.BEFORE_POST_GRAD.record, None))

    def _around_passes(
        self, names: Sequence[torch_names.PrivateName], before: str, after: Optional[str]
    ) -> Optional[Undo]:
        name = torch_names.first_row_of(*names)
        if name is None:
            return None
        original = name.find()

        @functools.wraps(original)
        def run_passes(gm: torch.fx.GraphModule, *args: object, **kwargs: object) -> object:
            # ``_recursive_..._passes`` calls itself for the graphs in a graph: only the outermost call is reported.
            if getattr(self._thread, "inside", False):
                return original(gm, *args, **kwargs)
            try:
                self._thread.inside = True
                self._send_graph(before, gm)
                result = original(gm, *args, **kwargs)
                self._thread.inside = False
                self._send_graph(after, result)
                return result
            except BaseException:
                self._thread.inside = False
                raise

        return name.replace(run_passes)

    def graph_breaks(self) -> Optional[Undo]:
        """Send the reasons of graph breaks: Dynamo creates an object for each."""
        cls = private_names.BREAK_REASON.find()
        original = getattr(cls, "__post_init__", None)
        if cls is None or original is None:
            return None

        def __post_init__(reason: Any) -> None:  # noqa: N807 - it replaces one
            original(reason)
            if reason.graph_break:
                self._send_graph_break(reason.reason, reason.user_stack)

        return _both(replace_attribute(cls, "__post_init__", __post_init__), self._breaks_that_skip())

    def _breaks_that_skip(self) -> Optional[Undo]:
        """Send graph breaks in loops: Dynamo skips the frame, by an exception raised while it handles another."""
        skip, broken = private_names.SKIP_FRAME.find(), private_names.UNSUPPORTED.find()
        if skip is None or broken is None:
            return None
        original = skip.__init__

        def __init__(error: BaseException, *args: object, **kwargs: object) -> None:  # noqa: N807 - it replaces one
            original(error, *args, **kwargs)
            # ``except Unsupported: ... raise SkipFrame(...)``: the graph break is the exception that is being handled.
            handled = sys.exc_info()[1]
            if isinstance(handled, broken):
                self._send_graph_break(str(handled), getattr(handled, "real_stack", ()))

        return replace_attribute(skip, "__init__", __init__)

    @safely("noting a graph break")
    def _send_graph_break(self, reason: str, frames: Iterable[traceback.FrameSummary]) -> None:
        stack = list(frames)
        place = f"{stack[-1].filename}:{stack[-1].lineno}" if stack else "an unknown place:0"
        text = (
            f"Graph break in user code at {place}\nGraph Break Reason: {reason}\n"
            f"User code traceback:\n{''.join(traceback.format_list(stack))}"
        )
        self._send(GRAPH_BREAK, {}, text)

    def recompilations(self) -> Optional[Undo]:
        """Send failed guards. Before 2.3 torch computes them before the compilation has an id, so they are sent at its
        end."""
        original = private_names.RECOMPILE_REASONS.find()
        if original is None:
            return None

        @functools.wraps(original)
        def get_reasons(cache_entry: object, frame: DynamoFrame, *args: object, **kwargs: object) -> object:
            reasons = original(cache_entry, frame, *args, **kwargs)
            # They are kept with the function that they are about: Dynamo may not compile it after all.
            code = frame.f_code
            self._thread.reasons = ((code.co_name, code.co_filename, code.co_firstlineno), reasons)
            if compile_ids.compilation_has_id():
                self._send_reasons(code)
            return reasons

        undo = private_names.RECOMPILE_REASONS.replace(get_reasons)
        return _both(undo, _before_metrics(self._send_reasons))

    @safely("noting why a function is recompiled")
    def _send_reasons(self, metrics: Any, *_: object, **__: object) -> None:
        """Send the reasons of this thread if they are about the function that ``metrics`` (or the code object) name."""
        function, reasons = getattr(self._thread, "reasons", (None, []))
        self._thread.reasons = (None, [])
        if reasons and function == (metrics.co_name, metrics.co_filename, metrics.co_firstlineno):
            self._send(RECOMPILATION, {}, json.dumps([str(reason) for reason in reasons]))

    def ends(self) -> Optional[Undo]:
        """Send the end of each compilation, with torch's metrics."""
        return _before_metrics(self._send_metrics)

    @safely("noting the end of a compilation")
    def _send_metrics(self, metrics: Any, *_: object, **__: object) -> None:
        numbers = {field.name: getattr(metrics, field.name) for field in dataclasses.fields(metrics)}
        numbers.setdefault("has_guarded_code", numbers.get("guard_count") is not None)
        numbers.setdefault("fail_type", "an error" if numbers.get("fail_reason") else None)
        self._send(FORWARD_METRICS, numbers, None)


def _with_inductor(hook: Callable[[], Optional[Undo]]) -> Optional[Undo]:
    """Install a hook of Inductor's passes when the program imports Inductor."""
    return when_imported(private_names.COMPILE_FX.module, hook)


def _before_metrics(note: Callable[..., object]) -> Optional[Undo]:
    """Call ``note`` with torch's metrics of each compilation when it ends, however it ends."""
    name = torch_names.first_row_of(private_names.RECORD_METRICS, private_names.LOG_COMPILATION)
    return None if name is None else call_before(name.holder(), name.name, note)


def _both(first: Undo, second: Optional[Undo]) -> Undo:
    def undo() -> None:
        if second is not None:
            second()
        first()

    return undo


def _event_of_graph(title: str) -> Optional[str]:
    if re.fullmatch(r"\w+", title) and compiled_fn_number(title) is not None:
        return Stage.CAPTURED.record
    stage = _PRINTED.get(title)
    return None if stage is None or stage in _FROM_PASSES else stage.record


def _in_trace(title: str) -> bool:
    """Return whether what is printed under this title is a graph that torch itself prints and has in its trace."""
    return _event_of_graph(title) is not None or title in _PRINTED or title == _COMPILED_AUTOGRAD
