"""Read PyTorch's settings, set them temporarily, and write them into scripts."""

from __future__ import annotations

import ast
import functools
import os
import sys
import tempfile
from contextvars import ContextVar, copy_context
from typing import Any, Callable, FrozenSet, Iterable, List, Sequence, Tuple

from depyf.base.asynchronous import synchronous
from depyf.base.late_regex import regex
from depyf.base.own_builtins import keep_builtins
from depyf.decompiler.syntax import parse
from depyf.dynamo.hooks import private_names, torch_names
from depyf.dynamo.hooks.patching import registered

keep_builtins(globals())


def dynamo_setting(name: str) -> Any:
    """Return the value of a setting of ``torch._dynamo.config``; None if this torch has no such setting."""
    return getattr(private_names.DYNAMO_CONFIG.find(), name, None)


def cuda_graphs_are_on() -> bool:
    """Return whether Inductor's settings make compiled code run CUDA graphs."""
    return bool(getattr(getattr(private_names.INDUCTOR_CONFIG.find(), "triton", None), "cudagraphs", False))


_CACHES_OFF = (
    (private_names.GRAPH_CACHE, False),
    (private_names.REMOTE_GRAPH_CACHE, False),
    (private_names.AOT_CACHE, False),
)

_LAUNCHES_REPORTED = ((private_names.PROVENANCE_LEVEL, 1),)


def switch_caches_off() -> Callable[[], None]:
    """Disable torch's caches of compiled graphs; return the function that restores the settings."""
    return _set(_CACHES_OFF)


def have_launches_reported() -> Callable[[], None]:
    """Make Inductor report which nodes each kernel computes: 2.9 does so only with a setting, which changes its cache
    keys. Return the function that restores the setting.
    """
    return _set(_LAUNCHES_REPORTED)


def _set(settings: Iterable[Tuple[torch_names.PrivateName, object]]) -> Callable[[], None]:
    """Change the settings as far as torch has them; return the function that restores them."""
    changed: List[Tuple[object, str, object]] = []

    def undo() -> None:
        while changed:
            setattr(*changed[-1])
            changed.pop()

    registered(undo)
    for switch, value in settings:
        config = switch.owner()
        if config is not None and switch.is_on(config):
            changed.append((config, switch.name, switch.of(config)))
            setattr(config, switch.name, value)
    return undo


def cache_directory() -> str:
    """Return the directory where torch keeps its compile caches."""
    where = torch_names.first_of(private_names.CACHE_DIRECTORY, private_names.CACHE_DIRECTORY_BEFORE)
    return str(where()) if where is not None else os.path.join(tempfile.gettempdir(), "depyf")


_SET_BY_TORCH = (
    ".deterministic",
    ".fake_tensor_allow_unsafe_data_ptr_access",
    "_cache",
    ".trace.provenance_tracking_level",
)
"""Settings that are reported as changed although the user did not: an alias, one that is set while Dynamo traces, and
what depyf sets: caches are off, launches are reported.
"""

_NO_DEFAULT = object()
_OF_GRAPHS = (private_names.INDUCTOR_CONFIG, private_names.AOT_CONFIG)


def settings_that_were_changed(of: Sequence[torch_names.PrivateName] = _OF_GRAPHS) -> List[str]:
    """Return statements that give Inductor and AOTAutograd the settings of this process, where a statement can; ``of``
    names other modules of settings."""
    statements: List[str] = []
    for name in of:
        config = name.find() if name.whole in sys.modules else None
        codegen_config = getattr(config, "codegen_config", None)
        defaults = private_names.SAVED_CONFIG.of(config, {})
        for line in codegen_config().splitlines() if codegen_config is not None else ():
            setting, _, text = line.partition(" = ")
            try:
                value = ast.literal_eval(parse(text, "eval"))
            except synchronous(ValueError, SyntaxError):
                continue
            # Since 2.6 a setting that was changed and restored is reported as well; its entry has the default. Before,
            # there are no entries, and PyTorch compares with the default.
            entry = defaults.get(setting.partition(".config.")[2])
            if not setting.endswith(_SET_BY_TORCH) and getattr(entry, "default", _NO_DEFAULT) != value:
                statements.append(line)
    return statements


_VARIABLES = regex(r"(?:TORCHDYNAMO|TORCHINDUCTOR|TORCH_COMPILE|TORCH_LOGS|AOT_|PYTORCH_CUDA_ALLOC)(?!\w*_DIR\Z)")
"""The variables of the environment that PyTorch computes defaults of settings from; not those that name a folder."""


def settings_in_force() -> List[str]:
    """Return the settings of Dynamo, Inductor and AOTAutograd in this thread that are not PyTorch's defaults, as
    statements: ``torch._dynamo.config.capture_scalar_outputs = True``. Settings that hold functions are left out.
    Variables of the environment come first: ``TORCHINDUCTOR_MAX_AUTOTUNE=1``."""
    found = [f"{name}={os.environ[name]}" for name in sorted(filter(_VARIABLES.match, os.environ))]
    of = [name for name in (private_names.DYNAMO_CONFIG, *_OF_GRAPHS) if name.whole in sys.modules]
    unset = private_names.UNSET_SETTING.find()
    if unset is None:  # before 2.6
        return found + settings_that_were_changed(of)
    # Of 800 settings few are set. PyTorch's own list of changes takes a millisecond, and each compilation asks.
    now = copy_context()
    for name in of:
        config = name.find()
        entries = private_names.SAVED_CONFIG.of(config, {})
        if not entries:  # it is being imported
            continue
        # Since 2.12 a setting is a variable of a context, and the thread's context holds only variables that were set.
        held = ((each.name, each) for each in now if each.name in entries)
        given = {setting for setting, variable in held if entries[setting].user_override is variable}
        given.update(_not_only_in_context(config))
        for setting in filter(given.__contains__, entries):
            entry = entries[setting]
            value = entry.user_override
            value = value.get() if type(value) is ContextVar else value
            if value is unset and entry.env_value_default is unset and entry.env_value_force is unset:
                continue
            if f".{setting}".endswith(_SET_BY_TORCH) or getattr(entry, "deprecated", False):
                continue
            text = repr(getattr(config, setting, entry.default))
            try:
                if ast.literal_eval(text) != entry.default:
                    found.append(f"{name.whole}.{setting} = {text}")
            except synchronous(ValueError, SyntaxError):
                continue
    return found


@functools.lru_cache(maxsize=None)
def _not_only_in_context(config: object) -> FrozenSet[str]:
    """Return the settings that may be set although the context lacks their variables: settings from the environment,
    which PyTorch reads at its import, and every setting before 2.12."""
    unset = private_names.UNSET_SETTING.find()
    return frozenset(
        setting
        for setting, entry in private_names.SAVED_CONFIG.of(config, {}).items()
        if type(entry.user_override) is not ContextVar
        or not (entry.env_value_default is unset and entry.env_value_force is unset)
    )


def numerics_that_were_changed() -> List[str]:
    """Return statements that give PyTorch the numerical settings of this process that are not the default."""
    torch = torch_names.module("torch")
    found: List[str] = []
    if torch.get_float32_matmul_precision() != "highest":
        found.append(f"torch.set_float32_matmul_precision({torch.get_float32_matmul_precision()!r})")
    if torch.are_deterministic_algorithms_enabled():
        warn = torch.is_deterministic_algorithms_warn_only_enabled()
        found.append(f"torch.use_deterministic_algorithms(True, warn_only={warn})")
    if torch.get_default_dtype() not in (torch.float32, torch.float64):  # float64 is set while values are widened
        found.append(f"torch.set_default_dtype({torch.get_default_dtype()})")
    return found


def settings_of_the_program() -> List[Tuple[str, object]]:
    """Return the settings of Inductor and AOTAutograd that hold functions or other objects of this program, such as
    passes, each with its value."""
    found: List[Tuple[str, object]] = []
    for name in (private_names.INDUCTOR_CONFIG, private_names.AOT_CONFIG):
        config = name.find() if name.whole in sys.modules else None
        for setting, entry in dict(private_names.SAVED_CONFIG.of(config, {})).items():
            if getattr(entry, "deprecated", False) or getattr(entry, "justknob", None):
                continue
            value = getattr(config, setting, None)
            if setting.startswith("_") and not callable(value):
                continue
            if value is not None and value is not getattr(entry, "default", None) and _is_of_a_program(value):
                found.append((f"{name.whole}.{setting}", value))
    return found


def custom_passes(settings: Iterable[str]) -> Tuple[str, ...]:
    """Return the settings of Inductor that hold a pass of the program now, each with the name of the pass."""
    name = private_names.INDUCTOR_CONFIG
    config = name.find() if name.whole in sys.modules else None
    found: List[str] = []
    for setting in settings:
        value = getattr(config, setting, None)
        passes = value if isinstance(value, (list, tuple)) else [] if value is None else [value]
        names = [str(getattr(each, "__qualname__", type(each).__qualname__)) for each in passes if callable(each)]
        found += [f"{setting} ({', '.join(names)})"] if names else []
    return tuple(found)


def _is_of_a_program(value: object) -> bool:
    if isinstance(value, (list, tuple)) and value:
        return any(map(_is_of_a_program, value))
    module = getattr(value, "__module__", None) if callable(value) else type(value).__module__
    return str(module).partition(".")[0] not in ("torch", "builtins")
