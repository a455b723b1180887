"""The configurations with which Triton kernels are launched: PyTorch chooses them when a kernel first runs."""

from __future__ import annotations

import os
import weakref
from dataclasses import replace
from types import ModuleType
from typing import Callable, Dict, List, Mapping, Sequence

from depyf.dynamo.capture.records import KernelFile, Record
from depyf.report.model.run import Run

_loaded: weakref.WeakValueDictionary[str, ModuleType] = weakref.WeakValueDictionary()
_watchers: List[Callable[[str, ModuleType], object]] = []
_OF_LAUNCHERS = (("n_regs", "registers"), ("n_spills", "spills"), ("shared", "shared memory"))


def note_module(path: str, module: object) -> None:
    """Remember the module that was loaded from a file of a dump, or of Inductor's cache."""
    if isinstance(module, ModuleType):
        _loaded[path] = module
        for watch in _watchers:
            watch(path, module)


def when_loaded(watch: Callable[[str, ModuleType], object]) -> Callable[[], None]:
    """Call ``watch`` with each module that is loaded from now on, which must not raise; return what ends that."""
    _watchers.append(watch)

    def undo() -> None:
        _watchers[:] = [each for each in _watchers if each is not watch]

    return undo


def with_chosen_launches(run: Run, records: Sequence[Record]) -> Run:
    """Return the run with the configurations that were chosen so far."""
    modules = {
        os.path.basename(each.path): _loaded.get(each.path) or _loaded.get(each.generated)
        for each in records
        if isinstance(each, KernelFile)
    }
    kernels = []
    for kernel in run.kernels:
        module = modules.get(kernel.artifact)
        chosen = {} if module is None or kernel.extern else chosen_launch(vars(module).get(kernel.name))
        kernels.append(replace(kernel, launch={**kernel.launch, **chosen}) if chosen else kernel)
    return replace(run, kernels=tuple(kernels))


def chosen_launch(kernel: object) -> Mapping[str, str]:
    """Return the configuration of a kernel of PyTorch's autotuner; empty for other objects, and before it has run."""
    launchers = getattr(kernel, "launchers", None)
    if not isinstance(launchers, (list, tuple)) or not launchers:
        return {}
    if len(launchers) > 1:
        return {"candidates": f"{len(launchers)}, none chosen yet"}
    (launcher,) = launchers
    config = getattr(launcher, "config", None)
    values: Dict[str, object] = dict(getattr(config, "kwargs", None) or {})
    for name in ("num_warps", "num_stages"):
        values[name] = getattr(config, name, None)
    for name, words in _OF_LAUNCHERS:
        values[words] = getattr(launcher, name, None)
    return {name: str(value) for name, value in values.items() if isinstance(value, (int, str, bool))}
