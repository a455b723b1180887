"""Replace attributes of other modules and classes, and restore them.

An asynchronous exception (a signal handler's, KeyboardInterrupt) may be raised between any two lines. So the undo
function of an installation is registered before the installation starts, in the list that ``collecting`` was given. An
undo function may be called at any time and repeatedly, and does nothing if nothing is installed.
"""

from __future__ import annotations

import functools
import threading
from typing import Callable, Dict, List, Optional, Tuple

from depyf.base.own_builtins import keep_builtins
from depyf.base.restoring import restoring
from depyf.dynamo.hooks.loaded_modules import namespaces_with

keep_builtins(globals())

Undo = Callable[[], None]

_here = threading.local()

_covered: List[Tuple[object, str, object, Undo]] = []
"""Replacements that were undone while another replacement covered them: owner, name, what was installed, how to
restore."""


_covered_everywhere: List[Tuple[str, object, object]] = []
"""Of ``replace_everywhere``: name, what was installed, what was there before."""


def collecting(undo: List[Undo], install: Callable[[], object]) -> None:
    """Call ``install``; each installation on this thread registers its undo function in ``undo`` before it starts. The
    result of ``install`` is registered as well, if it is callable or a list.
    """
    before: Optional[List[Undo]] = getattr(_here, "undo", None)
    with restoring(functools.partial(setattr, _here, "undo", before)) as again, again:
        _here.undo = undo
        returned = install()
        undo.extend(returned if isinstance(returned, list) else [returned] if callable(returned) else [])


def registered(undo: Undo) -> Undo:
    """Register ``undo``, which undoes what is about to be installed, and return it."""
    collector: Optional[List[Undo]] = getattr(_here, "undo", None)
    if collector is not None:
        collector.append(undo)
    return undo


def undo_all(undo: List[Undo]) -> None:
    """Undo what the list holds, the last first, and empty it. May be called again when it was interrupted."""
    while undo:
        undo[-1]()
        undo.pop()


def replace_attribute(owner: object, name: str, replacement: object) -> Undo:
    """Set ``owner.name`` and return the function that restores the old value.

    A replacement that other code has made since then is not touched: it may call ours, which therefore has to keep
    working (as a pass-through) after the undo. Ours is removed when the other replacement is undone.
    """
    put_back_uncovered()
    # The attribute as it stands in the class's own dictionary: reading it would bind a function to the class, and a
    # class that inherits it gets it back by deletion.
    before = own, previous = _own_value(owner, name)
    installed = replacement
    done = False

    def put_back() -> None:
        if own:
            setattr(owner, name, previous)
        elif _own_value(owner, name)[0]:
            delattr(owner, name)
        _put_back_covered(owner, name, previous)

    def undo() -> None:
        nonlocal done
        if done:
            return
        # ours was set:     previous <- ours                     restore
        # it was not:       previous                             nothing to restore; or the undo was interrupted
        # it is covered:    previous <- ours <- another          wait until ``another`` is undone
        now = _own_value(owner, name)
        if now[1] is installed:
            put_back()
        elif now[0] is own and now[1] is previous:
            _put_back_covered(owner, name, previous)
        elif not any(each[3] is put_back for each in _covered):
            _covered.append((owner, name, installed, put_back))
        done = True

    registered(undo)
    try:
        setattr(owner, name, replacement)
        now = _own_value(owner, name)
        installed = now[1] if now != before else replacement  # a setter of the owner may store another object
    except BaseException:
        undo()
        raise
    return undo


def put_back_uncovered() -> None:
    """Restore what was replaced if the replacement that covered ours at its undo has gone since (``mock.patch`` that
    the program leaves after the session)."""
    for each in list(_covered):
        if _own_value(each[0], each[1])[1] is each[2] and any(each is other for other in _covered):
            _covered[:] = [other for other in _covered if other is not each]
            each[3]()


def _put_back_covered(owner: object, name: str, present: object) -> None:
    """Continue to restore if the ``present`` value was undone while another replacement covered it."""
    for each in list(_covered):
        if each[0] is owner and each[1] == name and each[2] is present:
            each[3]()
            _covered.remove(each)


def replace_everywhere(name: str, present: object, replacement: object, package: str = "") -> Undo:
    """Bind ``name`` to ``replacement`` in all modules (of a package) where it is ``present``; return the undo function.

    ``from torch._dynamo.utils import lazy_format_graph_code`` makes a name in each importing module, and each is
    rebound. The undo also covers modules that were loaded meanwhile and imported the replacement. Names that other code
    has rebound are not touched, as in ``replace_attribute``.
    """
    begun = found = done = False

    def undo() -> None:
        nonlocal found, done
        if done or not begun:
            return
        bound = namespaces_with(name, replacement, package)
        found = found or bool(bound)
        _bind(name, bound, present)
        # Ours stands nowhere: a later ``replace_everywhere`` has replaced it, and will bind the names to ours again
        # when it is undone. Each undo therefore looks for replacements that were undone before and have come back.
        if not found:
            _covered_everywhere.append((name, replacement, present))
        for each in [each for each in _covered_everywhere if each[0] == name]:
            if _rebind(*each):
                _covered_everywhere.remove(each)
        done = True

    registered(undo)
    try:
        begun = True
        _rebind(name, present, replacement, package)
    except BaseException:
        _rebind(name, replacement, present, package)
        done = True
        raise
    return undo


def _rebind(name: str, present: object, replacement: object, package: str = "") -> bool:
    bound = namespaces_with(name, present, package)
    _bind(name, bound, replacement)
    return bool(bound)


def _bind(name: str, namespaces: List[Dict[str, object]], value: object) -> None:
    for namespace in namespaces:
        namespace[name] = value


def call_before(owner: object, name: str, note: Callable[..., object]) -> Undo:
    """Call ``note`` with the arguments of each call of the function ``owner.name``, before it runs, until undone."""
    original = getattr(owner, name)
    active = True

    @functools.wraps(original)
    def and_note(*args: object, **kwargs: object) -> object:
        if active:
            note(*args, **kwargs)
        return original(*args, **kwargs)

    def end() -> None:
        nonlocal active
        active = False
        undo()

    undo = replace_attribute(owner, name, and_note)
    return registered(end)


def _own_value(owner: object, name: str) -> Tuple[bool, object]:
    """Return whether ``owner`` itself (not a base class) has the attribute, and its value without its descriptor."""
    namespace = vars(owner)
    return (True, namespace[name]) if name in namespace else (False, None)
