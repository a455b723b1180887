"""PyTorch's bisector, which compiles with one part of the compiler disabled after the other."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
import traceback
from typing import Callable, ContextManager, Dict, List, Mapping, Optional, TypeVar

from depyf.answers.bisected import Bisected
from depyf.base.asynchronous import synchronous
from depyf.base.messages import describe
from depyf.dynamo.hooks import private_names
from depyf.dynamo.hooks.hooked_context import undone_afterwards
from depyf.dynamo.hooks.patching import collecting, replace_attribute

T = TypeVar("T")

NO_BISECTOR = "this PyTorch has none (torch._inductor.compiler_bisector, since 2.6)"
UNDER_WAY = "not run: a bisection has been started already, in this process or with `compiler_bisector start`"


def bisect(is_right: Callable[[str, Optional[str]], bool]) -> Bisected:
    """Return what the bisector finds. ``is_right`` compiles with a backend of PyTorch and returns whether the results
    are right; its second argument is the part of the backend that is disabled meanwhile, if one is.

    Other threads must not compile meanwhile: parts are disabled for the whole process.
    """
    bisector = private_names.BISECTOR.find()
    if bisector is None:
        return Bisected(message=NO_BISECTOR)
    if bisector.bisection_enabled or bisector.get_backend() is not None:
        return Bisected(message=UNDER_WAY)
    runs: List[bool] = []

    def compiled_is_right() -> bool:
        name = bisector.get_backend()
        with _settings(bisector.get_config_change(name) if name == "inductor" else None):
            runs.append(is_right(name, bisector.get_subsystem()))
        return runs[-1]

    def restore() -> None:
        if bisector.bisection_enabled:
            bisector.bisection_enabled = False
        if bisector.in_process_cache is not None:
            shutil.rmtree(bisector.in_process_cache, ignore_errors=True)
            bisector.in_process_cache = None

    with undone_afterwards("ending PyTorch's bisection") as undo:
        undo.append(restore)
        collecting(undo, lambda: replace_attribute(private_names.BISECTOR.holder(), "print", _say_nothing))
        try:
            found = _ended(lambda: bisector.do_bisect(compiled_is_right))
        except synchronous() as error:
            return Bisected(runs=len(runs), message=f"it failed: {describe(error)[:200]}")
    return Bisected(runs=len(runs)) if found is None else _bisected(vars(found), len(runs))


def _bisected(found: Mapping[str, object], runs: int) -> Bisected:
    """Return the fields of a ``BisectionResult`` as ours."""
    backend, subsystem, number = (found.get(name) for name in ("backend", "subsystem", "bisect_number"))
    return Bisected(
        str(backend),
        None if subsystem is None else str(subsystem),
        number if isinstance(number, int) else None,
        str(found.get("debug_info") or ""),
        runs,
    )


_MARK = "what the bisector has found: "

_BISECT_SCRIPT = f"""
import json, runpy, sys, traceback
import torch
from {private_names.BISECTOR.module} import {private_names.BISECTOR.attribute} as bisector

sys.argv = sys.argv[1:]
script = runpy.run_path(sys.argv[0], run_name="script")

def runs():
    {private_names.DYNAMO_RESET.whole}()
    try:
        return script["main"]() == 0
    except Exception:
        traceback.print_exc()
        return False

found = bisector.do_bisect(runs)
print("\\n" + {_MARK!r} + json.dumps(None if found is None else vars(found)))
"""
_NO_CACHES = {"TORCHINDUCTOR_FX_GRAPH_CACHE": "0", "TORCHINDUCTOR_AUTOGRAD_CACHE": "0"}


def bisect_script(path: str, environment: Mapping[str, str], seconds: float) -> Bisected:
    """Return what the bisector finds in a process that calls ``main()`` of a script again and again, which returns 0
    where results are right. After so many seconds the process is stopped. (``compiler_bisector run`` starts a process
    for each call, and PyTorch 2.13's deletes the whole cache directory at its end.)
    """
    if private_names.BISECTOR.find() is None:
        return Bisected(message=NO_BISECTOR)
    try:
        done = subprocess.run(
            [sys.executable, "-c", _BISECT_SCRIPT, path],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=seconds,
            env={**environment, **_NO_CACHES},
        )
    except subprocess.TimeoutExpired:
        return Bisected(message=f"it was stopped after {seconds:.0f} seconds")
    lines = done.stdout.splitlines()
    for line in lines:
        if line.startswith(_MARK):
            found = json.loads(line[len(_MARK) :])
            return Bisected() if found is None else _bisected(found, 0)
    return Bisected(message=f"it failed: {' / '.join(lines[-2:])[-300:]}")


def _say_nothing(*_: object, **__: object) -> None:
    """Replace ``print``."""


def _settings(changes: Optional[Dict[str, object]]) -> ContextManager[object]:
    """Return a context with these settings of Inductor, which PyTorch applies only to backends that are made anew."""
    config = private_names.INDUCTOR_CONFIG.find()
    return config.patch(changes) if changes and config is not None else contextlib.nullcontext()


def _ended(call: Callable[[], T]) -> T:
    """Return the result of the call. If it raises, clear the bisector's frames: the bisector restores its state when an
    object is deleted that a frame holds."""
    try:
        return call()
    except BaseException as error:
        for frame, _ in traceback.walk_tb(error.__traceback__):
            if frame.f_globals.get("__name__") == private_names.BISECTOR.module:
                frame.clear()
        raise
