"""Run the cache entries that the compiled parts of a call hit, where the whole is not compiled
(``model.layers[0].compile()``, a helper function). A part sees the values of the call only while it runs, so its entry
is looked up there: for the part of the program itself, as its guards may require that very object. A module's entry
runs on the copy of the module; a function, of which there is no copy, runs as in the program.
"""

from __future__ import annotations

import contextlib
from types import FunctionType, MethodType
from typing import Callable, Dict, List, Mapping, Optional, Tuple

from depyf.base.asynchronous import synchronous
from depyf.base.messages import describe, listed
from depyf.dynamo.entries.call_target import CallTarget, resolve
from depyf.dynamo.entries.callables import module_classes, plain_function
from depyf.dynamo.hooks import frame_evaluation, private_names
from depyf.dynamo.hooks.compiled_callables import is_compiled_module
from depyf.dynamo.hooks.nested_code import closure_of
from depyf.dynamo.questions.compare.hit_entry import (
    EntryValues,
    NotRunError,
    entry_hit,
    nothing_new_compiled,
)
from depyf.dynamo.questions.compare.observed_run import NoGradientsError, random_numbers_kept, run
from depyf.dynamo.questions.compare.private_copy import PrivateCopy, private_copy, with_own_code
from depyf.dynamo.questions.compare.state_snapshot import StateSnapshot

_NAMED = 4


class HitParts:
    """A call whose parts are compiled. ``names`` are the entries that were hit, each with its part."""

    def __init__(self, target: CallTarget) -> None:
        self._target = target
        self.names: Dict[str, None] = {}

    @property
    def name(self) -> str:
        """The entries that the call hit, for messages."""
        return listed(list(self.names), _NAMED)

    def run(
        self,
        args: Tuple[object, ...],
        kwargs: Mapping[str, object],
        shared: StateSnapshot,
        *,
        backward: bool,
        seed: int,
    ) -> EntryValues:
        """Make the call on copies, with the entries of its parts; nothing is compiled."""
        skipped: List[str] = []
        try:
            call = private_copy(self._target, args, kwargs)
            self._replace_parts(call)
            with contextlib.ExitStack() as stack:
                stack.enter_context(random_numbers_kept(seed))
                stack.enter_context(shared.restored())
                stack.enter_context(nothing_new_compiled(call, None, skipped))
                values = run(call, call.compiled(lambda function: function), backward=backward).values
        except NotRunError as error:
            return EntryValues({}, not_run=str(error))
        except NoGradientsError:
            return self.run(args, kwargs, shared, backward=False, seed=seed)
        except synchronous() as error:
            return EntryValues({}, f"{describe(error)[:500]}")
        after = f"after a graph break {listed(skipped, _NAMED)} ran as plain Python" if skipped else ""
        return EntryValues(values, not_run=after)

    def _replace_parts(self, call: PrivateCopy) -> None:
        """Let calls of the copied parts run the entries of their originals. Raises ``NotRunError`` for other parts."""
        inner = self._target.inner
        modules = dict(inner.named_modules()) if isinstance(inner, module_classes()) else {}
        plain = plain_function(self._target.frame)
        variables = {**plain.__globals__, **dict(closure_of(plain))}
        functions: Dict[str, object] = {}
        for name in self._target.parts:
            original = modules.get(name)
            copied = call.memo.get(id(original))
            if isinstance(copied, module_classes()):
                # The copy of a compiled part has no compiled call (``private_copy``): this one stands there instead.
                part = private_names.ORIGINAL_MODULE.of(copied) if is_compiled_module(copied) else copied
                of_part = self._call_of(name, resolve(original, "compare"), part, call)
                vars(copied)[private_names.COMPILED_CALL.name] = of_part
            elif isinstance(variables.get(name), FunctionType):
                functions[name] = self._noted(name, variables[name], call)
            else:
                raise NotRunError(f"{name} is compiled by itself, and its entries are only known while it runs")
        if functions:
            _rename(call, functions)

    def _noted(self, name: str, part: object, call: PrivateCopy) -> Callable[..., object]:
        """Return a function like a compiled part that notes the entry that is hit."""
        target = resolve(part, "compare")

        def of_function(*args: object, **kwargs: object) -> object:
            _, hit = entry_hit(target, args, kwargs)
            if hit is not None:
                self.names.setdefault(f"{hit.shown.name} of {name}")
            return part(*args, **kwargs)  # type: ignore[operator]

        return of_function

    def _call_of(
        self, name: str, target: CallTarget, copied: Callable[..., object], call: PrivateCopy
    ) -> Callable[..., object]:
        plain = private_names.CALL_OF_MODULE.require()
        attributes = vars(copied)

        def of_part(*args: object, **kwargs: object) -> object:
            given = tuple(call.original_of(each) for each in args)
            _, hit = entry_hit(target, given, {key: call.original_of(each) for key, each in kwargs.items()})
            if hit is None:  # the program would compile it anew
                return plain(copied, *args, **kwargs)
            self.names.setdefault(f"{hit.shown.name} of {name}")
            forward = attributes.get("forward")
            before = frame_evaluation.set_eval_frame(False)
            try:
                hit.with_entry_code(copied)
                return plain(copied, *args, **kwargs)
            finally:
                frame_evaluation.set_eval_frame(before)
                attributes.pop("forward", None)
                if forward is not None:
                    attributes["forward"] = forward

        return of_part


def _rename(call: PrivateCopy, values: Mapping[str, object]) -> None:
    """Give the copied function of a call other values of some of its globals and enclosed variables."""
    function = call.function
    if isinstance(function, module_classes()):
        forward = vars(function)["forward"]
        vars(function)["forward"] = MethodType(with_own_code(plain_function(forward), values, values), function)
    elif isinstance(function, MethodType):
        call.function = MethodType(with_own_code(function.__func__, values, values), function.__self__)
    else:
        call.function = with_own_code(function, values, values)


def parts_hit(target: CallTarget) -> Optional[HitParts]:
    """Return the compiled parts of a call that is not compiled as a whole; None if it has none."""
    return HitParts(target) if target.parts else None
