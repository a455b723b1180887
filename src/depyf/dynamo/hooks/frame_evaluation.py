"""Which frames Dynamo compiles, what it does with them, and the hooks that it calls."""

from __future__ import annotations

from types import CodeType
from typing import Callable, List, Optional, Set

from depyf.base.own_builtins import keep_builtins
from depyf.dynamo.hooks import private_names, torch_names
from depyf.dynamo.hooks.patching import Undo, registered
from depyf.dynamo.hooks.torch_types import Removable

keep_builtins(globals())

_kept_out: Set[str] = set()


def register_bytecode_hook(hook: Callable[[CodeType, CodeType], Optional[CodeType]]) -> Optional[Removable]:
    """Register ``hook(original, transformed)``; return the handle whose ``remove()`` undoes it."""
    register = private_names.REGISTER_BYTECODE_HOOK.find_or_report()
    return None if register is None else register(hook)


def watch_bytecode(hook: Callable[[CodeType, CodeType], Optional[CodeType]]) -> Optional[Undo]:
    """Call ``hook(original, transformed)`` for each code object that Dynamo generates; return the function that stops
    it.
    """
    handles: List[Optional[Removable]] = []

    def end() -> None:
        while handles:
            handle = handles[-1]
            if handle is not None:
                handle.remove()
            handles.pop()
        hooks = private_names.BYTECODE_HOOKS.find() or {}
        for key in [key for key, value in hooks.items() if value is hook]:  # its handle never came
            hooks.pop(key, None)

    registered(end)
    handles.append(register_bytecode_hook(hook))
    if handles == [None]:
        handles.clear()
        return None
    return end


def can_skip_code() -> bool:
    """Return whether Dynamo can be told to never trace a code object."""
    return torch_names.first_row_of(private_names.SKIP_CODE, private_names.SKIP_CODE_IN_C) is not None


def skip_code(code: CodeType) -> bool:
    """Make Dynamo never trace ``code``; return False if that is not possible."""
    skip = torch_names.first_of(private_names.SKIP_CODE, private_names.SKIP_CODE_IN_C)
    if skip is None:
        return False
    skip(code)
    return True


def keep_dynamo_out(package: str) -> None:
    """Make Dynamo never trace frames of this package's files."""
    add = torch_names.first_of(private_names.ADD_SKIPPED, private_names.ADD_SKIPPED_BEFORE)
    if add is not None and package not in _kept_out:
        add(package)
        _kept_out.add(package)


def set_eval_frame(callback: object) -> object:
    """Set what Dynamo does with this thread's new frames (None: nothing); return what it was."""
    setter = private_names.SET_EVAL_FRAME_IN_C.find()
    return None if setter is None else setter(callback)


def has_stances() -> bool:
    """Return whether this PyTorch has ``torch.compiler.set_stance`` (2.6 and later)."""
    return private_names.CALLBACK_FROM_STANCE.find() is not None


def stance() -> str:
    """Return the stance that ``torch.compiler.set_stance`` has set, ``default`` if there are none."""
    known = private_names.STANCE.find()  # it is replaced with each
    return str(getattr(known, "stance", "default"))


def skips_guards() -> bool:
    """Return whether the stance has ``skip_guard_eval_unsafe``: only guards that tell entries apart are evaluated."""
    return bool(getattr(private_names.STANCE.find(), "skip_guard_eval_unsafe", False))


def filters_guards(callback: object) -> bool:
    """Return whether a callback of Dynamo's has a ``guard_filter_fn``, which drops guards."""
    return private_names.GUARD_FILTER.of(private_names.DYNAMO_HOOKS.of(callback)) is not None


def forced_backend() -> object:
    """Return the backend that the stance forces (``force_backend``), a name or a callable; None if it forces none."""
    return getattr(private_names.STANCE.find(), "backend", None)


def set_stance(name: str, *, skip_guards: bool = False) -> Undo:
    """Set the stance; return what restores the one of now, with all its options."""
    before = private_names.STANCE.find()
    put_back = private_names.SET_STANCE.find()

    def restore() -> None:
        if put_back is not None and private_names.STANCE.find() is not before:
            put_back(before)

    registered(restore)
    import torch

    if skip_guards:
        torch.compiler.set_stance(name, skip_guard_eval_unsafe=True)
    elif name != "default" or has_stances():  # before 2.6 there is no other stance
        torch.compiler.set_stance(name)  # PyTorch 2.6 knows no other argument
    return restore


def run_this_once() -> Optional[object]:
    """Return the result of a Dynamo callback that runs a frame eagerly this time, and calls the callback again next
    time. None if this PyTorch (before 2.7) has no such result; a callback that returns None is not called again.
    """
    answer, strategy, action = (
        name.find()
        for name in (private_names.CALLBACK_RESULT, private_names.FRAME_STRATEGY, private_names.FRAME_ACTION)
    )
    if answer is None or strategy is None or action is None:
        return None
    made: object = answer(frame_exec_strategy=strategy(action.DEFAULT, action.DEFAULT), apply_to_code=False)
    return made


def skips(code: CodeType) -> bool:
    """Return whether Dynamo never compiles a frame of this code because of its file."""
    check = torch_names.first_of(private_names.CHECK_SKIPPED, private_names.CHECK_SKIPPED_BEFORE)
    return bool(check is not None and check(code))


def reports_runs() -> bool:
    """Return whether this torch reports when transformed code runs (see ``run_callback``)."""
    return private_names.SET_RUN_CALLBACK.find() is not None
