"""The methods that run compiled backwards. AOTAutograd stores each backward in a class, which autograd's node calls."""

from __future__ import annotations

import functools
import weakref
from typing import Any, Callable, List, Optional

from depyf.base.own_builtins import keep_builtins
from depyf.dynamo.hooks import frame_evaluation, private_names, torch_names
from depyf.dynamo.hooks.patching import Undo, registered

keep_builtins(globals())

_METHODS = (private_names.BACKWARD_IMPL.name, "backward")
"""The methods that run the backward graph; older versions of PyTorch have only the second, which does a little more."""

Method = Callable[..., object]


def all_backward_classes() -> List[type]:
    """Return the classes of all live graphs, also of those that Dynamo no longer has."""
    function: Any = torch_names.find("torch.autograd.function", "Function")
    return [each for each in function.__subclasses__() if "compiled_bw" in vars(each)]


def replace_backward(owner: type, around: Callable[[Method], Method]) -> Optional[Undo]:
    """Replace the method by which ``owner`` runs its backward with ``around(method)``; return the function that
    restores it. A later replacement by other code is not touched, and the class is not kept alive. None if the class
    has no such method.
    """
    method = next((each for each in _METHODS if isinstance(vars(owner).get(each), staticmethod)), None)
    if method is None:
        return None
    original = vars(owner)[method]
    replacement: Any = functools.wraps(original.__func__)(around(original.__func__))
    frame_evaluation.skip_code(replacement.__code__)
    replacement._depyf_original = original
    owner_alive: weakref.ref[type] = weakref.ref(owner)
    replacement_alive: weakref.ref[Any] = weakref.ref(replacement)

    def undo() -> None:
        alive, ours = owner_alive(), replacement_alive()
        if alive is None or ours is None:
            return
        before, top = ours._depyf_original, getattr(vars(alive).get(method), "__func__", None)
        if top is ours:
            setattr(alive, method, before)
        while top is not None and top is not ours:  # another of these is above it, and will restore the one below
            below = getattr(top, "_depyf_original", None)
            top_above, top = top, getattr(below, "__func__", None)
            if top is ours:
                top_above._depyf_original = before

    registered(undo)
    setattr(owner, method, staticmethod(replacement))
    return undo
