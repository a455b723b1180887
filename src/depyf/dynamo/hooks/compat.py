"""Every private name of torch that depyf relies on, looked up by attribute and never by version number.

A name that a torch does not have is answered with ``None`` and reported once, in words that say what is lost. Nothing
else in depyf reaches into torch's private modules by name (guards have their own, equally small, place).
"""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.util
import os
import sys
import tempfile
import weakref
from dataclasses import dataclass
from types import CodeType, FrameType, MethodType, ModuleType, SimpleNamespace
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Set, Tuple

from depyf.asynchronous import synchronous
from depyf.bytecode.parsing import parse
from depyf.dynamo.hooks.patching import Undo, registered
from depyf.messages import warn

_reported: Set[str] = set()
_kept_out: Set[str] = set()
_ids_of_contexts: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()

_forgotten: Dict[int, CodeType] = {}
"""Code whose cache entries depyf took away."""

REMOVED = "removed by depyf, which had it made to observe the graph"
"""Why a cache entry is invalid that ``dynamo/observe`` had made; Dynamo keeps such entries in its list."""

NO_TORCH = "depyf.{name} looks into torch.compile and needs PyTorch: install it with `pip install 'depyf[torch]'`"


def require_torch(name: str) -> None:
    """Raise an ``ImportError`` that says what to install when ``depyf.<name>`` is used without PyTorch."""
    try:
        importlib.import_module("torch._dynamo")
    except ImportError as error:
        raise ImportError(NO_TORCH.format(name=name)) from error


def report_once(key: str, message: str) -> None:
    """Log one warning for each ``key`` and stay silent after that."""
    if key not in _reported:
        _reported.add(key)
        warn("%s", message)


def find(module_name: str, attribute: str) -> Optional[Any]:
    """The attribute of that module as it is now, or ``None`` where this torch lacks one of them.

    It is looked up each time: two that wrap one function must find each other's wrapper, not both the original.
    """
    return getattr(_module_or_none(module_name), attribute, None)


_modules: Dict[str, Optional[ModuleType]] = {}


def _module_or_none(name: str) -> Optional[ModuleType]:
    """The module of that name, or ``None`` where this torch has none, or one that can't be imported here."""
    if name not in _modules:
        try:
            _modules[name] = importlib.import_module(name)
        except synchronous(ImportError):
            _modules[name] = None
        except synchronous() as error:  # it may be possible later on: descriptors or memory were short, say
            report_once(
                f"importing {name}",
                f"PyTorch's {name} can't be imported here ({type(error).__name__}: {error}). Your program goes on; "
                "what depyf learns from it will be missing in the dump",
            )
            return None
    return _modules[name]


def find_or_report(module_name: str, attribute: str, lost: str) -> Optional[Any]:
    """Like ``find``, and says once what is ``lost`` when the name is missing."""
    found = find(module_name, attribute)
    if found is None:
        report_once(f"{module_name}.{attribute}", f"this PyTorch has no {module_name}.{attribute}: {lost}")
    return found


def current_compile_id() -> Optional[str]:
    """The id of the compilation that this thread is in, as ``"frame/compile"``; ``None`` outside of one.

    It is also set while autograd compiles a backward graph lazily. Up to 2.3 torch goes back to the tracing context of
    the forward graph then, but not to its id; so the id is remembered by that context.
    """
    context = find("torch._guards", "CompileContext")
    current = getattr(context, "current_compile_id", None)
    compile_id = current() if current is not None else None
    tracing = getattr(find("torch._guards", "TracingContext"), "try_get", lambda: None)()
    if compile_id is None:
        return None if tracing is None else _ids_of_contexts.get(tracing)
    if tracing is not None:
        _ids_of_contexts[tracing] = str(compile_id)
    return str(compile_id)


def current_attempt() -> int:
    """How often Dynamo has begun this compilation anew."""
    context = find("torch._guards", "CompileContext")
    current = getattr(context, "current_trace_id", None)
    trace_id = current() if current is not None else None
    return getattr(trace_id, "attempt", 0)


def register_bytecode_hook(hook: Callable[[CodeType, CodeType], Optional[CodeType]]) -> Optional[Any]:
    """Register ``hook(original, transformed)``; answers the handle whose ``remove()`` undoes it."""
    register = find_or_report(
        "torch._dynamo.convert_frame", "register_bytecode_hook", "transformed code can't be captured"
    )
    return None if register is None else register(hook)


def watch_bytecode(hook: Callable[[CodeType, CodeType], Optional[CodeType]]) -> Optional[Undo]:
    """Call ``hook(original, transformed)`` for each code object that Dynamo makes; returns what ends that."""
    handles: List[Any] = []

    def end() -> None:
        while handles:
            handles[-1].remove()
            handles.pop()
        hooks = find("torch._dynamo.convert_frame", "_bytecode_hooks") or {}
        for key in [key for key, value in hooks.items() if value is hook]:  # its handle never came
            hooks.pop(key, None)

    registered(end)
    handles.append(register_bytecode_hook(hook))
    if handles == [None]:
        handles.clear()
        return None
    return end


def frame_globals(original: CodeType) -> Optional[Mapping[str, Any]]:
    """The globals of the frame that is being compiled, seen from within a bytecode hook."""
    frame = _frame_being_compiled(original)
    return None if frame is None else frame.f_globals


def frame_locals(original: CodeType) -> Optional[Mapping[str, Any]]:
    """Its local variables; None where it is not known."""
    found = getattr(_frame_being_compiled(original), "f_locals", None)
    return found if isinstance(found, Mapping) else None


def _frame_being_compiled(original: CodeType) -> Any:
    """The frame with this code that Dynamo compiles now; None where it is not known.

    Dynamo passes a hook code objects only; the frame is a local variable of one of its functions that called it.
    """
    caller: Optional[FrameType] = sys._getframe(1)
    while caller is not None:
        frame = caller.f_locals.get("frame")
        if frame is not None and getattr(frame, "f_code", None) is original:
            return frame
        caller = caller.f_back
    return None


def code_being_compiled() -> Optional[CodeType]:
    """The user's code that Dynamo compiles now, seen from within a hook: a local of the function that does so."""
    caller: Optional[FrameType] = sys._getframe(1)
    while caller is not None:
        code = (
            caller.f_locals.get("code") if caller.f_globals.get("__name__") == "torch._dynamo.convert_frame" else None
        )
        if isinstance(code, CodeType):
            return code
        caller = caller.f_back
    return None


def compilation_has_id() -> bool:
    """Whether the function of Dynamo's that calls a hook, perhaps through others of ours, compiles under an id."""
    caller: Optional[FrameType] = sys._getframe(1)
    while caller is not None and caller.f_globals.get("__name__") != "torch._dynamo.convert_frame":
        caller = caller.f_back
    return caller is not None and "compile_id" in caller.f_locals


def compile_id_of(error: BaseException) -> Optional[str]:
    """The id of the compilation that raised ``error``, which has ended by now; None where there was none.

    Later versions of PyTorch attach it to most of their exceptions; else it is a local variable of a function of
    Dynamo's that the traceback goes through.
    """
    compile_id = getattr(error, "compile_id", None)
    traceback = error.__traceback__
    while compile_id is None and traceback is not None:
        compile_id = traceback.tb_frame.f_locals.get("compile_id")
        traceback = traceback.tb_next
    return None if compile_id is None else str(compile_id)


def place_of(error: BaseException) -> Optional[Tuple[str, int]]:
    """The file and line of the user's code at which Dynamo raised ``error``; None where it does not say so."""
    place = getattr(error, "innermost_user_frame_summary", None)
    stack = getattr(error, "real_stack", None)
    if place is None and stack:
        place = stack[-1]
    return None if place is None else (str(place.filename), int(place.lineno))


def dynamo_setting(name: str) -> Any:
    """The value of a setting of ``torch._dynamo.config``; None where this torch has no such setting."""
    return getattr(find("torch._dynamo", "config"), name, None)


def original_of(transformed: CodeType) -> Optional[CodeType]:
    """The user's code (or that of a resume function) that Dynamo made ``transformed`` of; None if forgotten."""
    known = find("torch._dynamo.utils", "orig_code_map")
    original = None if known is None else known.get(transformed)
    return original if isinstance(original, CodeType) else None


def transformed_codes() -> List[CodeType]:
    """All code that Dynamo has made and not forgotten."""
    known = getattr(find("torch._dynamo.utils", "orig_code_map"), "refs", None) or {}
    codes = [reference() for reference in list(known.values())]
    return [code for code in codes if isinstance(code, CodeType)]


def skip_code(code: CodeType) -> bool:
    """Tell Dynamo never to trace ``code``; False where it can't be told."""
    skip = find("torch._dynamo.eval_frame", "skip_code") or find("torch._C._dynamo.eval_frame", "skip_code")
    if skip is None:
        return False
    skip(code)
    return True


def keep_dynamo_out(package: str) -> None:
    """Tell Dynamo never to trace frames of this package's files."""
    add = find("torch._dynamo.trace_rules", "add") or find("torch._dynamo.skipfiles", "add")
    if add is not None and package not in _kept_out:
        add(package)
        _kept_out.add(package)


def set_eval_frame(callback: Any) -> Any:
    """Set what Dynamo does with this thread's new frames (None: nothing); answers what it was."""
    setter = find("torch._C._dynamo.eval_frame", "set_eval_frame")
    return None if setter is None else setter(callback)


@functools.lru_cache(maxsize=None)
def reports(event: str, module_name: str) -> bool:
    """Whether this torch has the event in its structured trace: the module that would send it names it.

    The module is read and not imported, which can take seconds. What can't be read is taken to report it.
    """
    spec = importlib.util.find_spec(module_name)
    if spec is None or spec.origin is None:
        return True
    with open(spec.origin, encoding="utf-8") as file:
        return f'"{event}"' in file.read()


def interned_strings() -> Any:
    """The table (text to number) that the structured trace abbreviates file names with."""
    return find("torch._logging.structured", "INTERN_TABLE") or {}


def pycode_cache() -> Optional[Any]:
    """Inductor's loader of generated Python modules, or ``None`` where there is no Inductor."""
    return find_or_report("torch._inductor.codecache", "PyCodeCache", "Inductor's kernels can't be dumped")


def loads_backward() -> Optional[bool]:
    """Whether the module of Inductor's that is being loaded computes gradients; None where that can't be told.

    The loader does not say. Who calls it knows: what lowers a graph, or a compiled graph out of a cache; up to 2.4 only
    a local variable of the function that begins to compile.
    """
    caller: Optional[FrameType] = sys._getframe(1)
    while caller is not None:
        told, owner = None, caller.f_locals.get("self")
        if type(owner).__module__.startswith("torch._inductor"):
            arguments = getattr(owner, "fx_kwargs", None) or {}
            told = arguments.get("is_backward", getattr(owner, "is_backward", None))
        elif caller.f_globals.get("__name__") == "torch._inductor.compile_fx":
            told = caller.f_locals.get("is_backward")
        if isinstance(told, bool):
            return told
        caller = caller.f_back
    return None


def maker_of_names() -> Optional[Tuple[ModuleType, str]]:
    """The module and the name of the function that makes up ``__compiled_fn_<id>`` for Dynamo's output graph."""
    for attribute in ("make_compiled_fn_name", "unique_id"):
        if find("torch._dynamo.output_graph", attribute) is not None:
            return importlib.import_module("torch._dynamo.output_graph"), attribute
    report_once(
        "torch._dynamo.output_graph.unique_id",
        "this PyTorch has neither make_compiled_fn_name nor unique_id in torch._dynamo.output_graph: "
        "graph files can't be named after their __compiled_fn",
    )
    return None


def aot_codegen_modules() -> Iterator[ModuleType]:
    """The modules whose ``_compile_and_exec_source`` turns AOTAutograd's generated wrappers into functions.

    Older versions of PyTorch write these wrappers by hand and have none.
    """
    for name in ("codegen", "subclass_codegen"):
        try:
            module = importlib.import_module(f"torch._functorch._aot_autograd.{name}")
        except ImportError:
            continue
        if hasattr(module, "_compile_and_exec_source"):
            yield module


def tells_of_absent_items() -> bool:
    """Whether the text of a guard on what a set holds says which way it is meant (not so in 2.8 and 2.9)."""
    builder = find("torch._dynamo.guards", "GuardBuilder")
    return not hasattr(builder, "SET_CONTAINS") or hasattr(builder, "SET_NOT_CONTAINS")


def has_stances() -> bool:
    """Whether this PyTorch has ``torch.compiler.set_stance`` (2.6 and later)."""
    return find("torch._dynamo.eval_frame", "_callback_from_stance") is not None


def stance() -> str:
    """The stance that ``torch.compiler.set_stance`` has set; ``default`` where there are none."""
    known = getattr(module("torch._dynamo.eval_frame"), "_stance", None)  # it is replaced with each
    return str(getattr(known, "stance", "default"))


def run_this_once() -> Optional[Any]:
    """What a callback of Dynamo's answers so that a frame runs as it is this time, and is asked for the next time.

    None where this PyTorch (before 2.7) has no such answer; to answer nothing means never to be asked again.
    """
    answer, strategy, action = (
        find("torch._dynamo.types", name) for name in ("ConvertFrameReturn", "FrameExecStrategy", "FrameAction")
    )
    if answer is None or strategy is None or action is None:
        return None
    return answer(frame_exec_strategy=strategy(action.DEFAULT, action.DEFAULT), apply_to_code=False)


def interprets_graphs() -> bool:
    """Whether the backend aot_eager hands its graphs to ``torch.fx.Interpreter`` (2.13 calls their ``forward``)."""
    compiler = find("torch._dynamo.backends.debugging", "boxed_nop")
    code = getattr(compiler, "__code__", None)
    return code is not None and any("boxed_run" in each.co_names for each in _with_nested(code))


def _with_nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _with_nested(constant)


@dataclass(frozen=True)
class CacheEntry:
    """One of Dynamo's cache entries as it was when it was read.

    Dynamo's own object is gone when something dies that it guards, and who reads it then ends the process. ``code`` is
    None where Dynamo has thrown it away, ``compile_id`` and ``backend`` where this torch does not tell them.
    """

    code: Optional[CodeType]
    guard_manager: Any
    compile_id: Optional[str]
    backend: Any


def _as_read(entry: Any) -> CacheEntry:
    compile_id = getattr(entry, "compile_id", None)
    known = None if compile_id is None else str(compile_id)
    return CacheEntry(entry.code, guards_of(entry), known, getattr(entry, "backend", None))


def cache_entries(code: CodeType, region: int = -1) -> List[CacheEntry]:
    """Dynamo's cache entries of the original ``code``, most recently used first.

    ``region`` is that of a ``torch.compile(..., isolate_recompiles=True)``, whose entries are tried before all others'.
    """
    of_region = find("torch._dynamo.eval_frame", "_get_cache_entries_for_region") if region != -1 else None
    own = [] if of_region is None else list(of_region(code, region))
    lookup = find_or_report(
        "torch._dynamo.eval_frame", "_debug_get_cache_entry_list", "cache entries and their guards can't be read"
    )
    found = own if lookup is None else own + [entry for entry in lookup(code) if entry not in own]
    entries = [_as_read(entry) for entry in found]
    return [entry for entry in entries if getattr(entry.guard_manager, "invalidation_reason", None) != REMOVED]


def entry_of(compiled: Any) -> Optional[Any]:
    """The object of Dynamo's (``OptimizeContext``) that ``torch.compile`` put around ``compiled``; None for others.

    A wrapper of somebody else's around a compiled function has the attributes of that one, but not its code.
    """
    if is_compiled_module(compiled):
        return compiled.dynamo_ctx
    function = getattr(compiled, "__func__", compiled)
    code = getattr(function, "__code__", None)
    if code is None or not hasattr(function, "_torchdynamo_orig_callable"):
        return None
    if "self" not in code.co_freevars:  # up to 2.5, what is disabled does not know by what
        disabled = getattr(function, "_torchdynamo_disable", False) and is_torchs(code)
        return SimpleNamespace(callback=None) if disabled else None
    cell = function.__closure__[code.co_freevars.index("self")]
    found = cell.cell_contents
    return found if hasattr(found, "callback") and is_torchs(code) else None


def is_compiled_module(value: Any) -> bool:
    """Whether this is what ``torch.compile`` made of a module."""
    made = find("torch._dynamo.eval_frame", "OptimizedModule")
    return made is not None and isinstance(value, made)


def unwrapped(function: Any) -> Optional[Any]:
    """What ``torch.compile`` was given to make ``function``; None where that was not made by it."""
    if entry_of(function) is None:
        return None
    inner = function._orig_mod if is_compiled_module(function) else function._torchdynamo_orig_callable
    if isinstance(function, MethodType) and inner is not None and not isinstance(inner, MethodType):
        return MethodType(inner, function.__self__)  # decorated in the body of its class
    return inner


def skips(code: CodeType) -> bool:
    """Whether Dynamo never compiles a frame of this code, because of the file that it is in."""
    check = find("torch._dynamo.trace_rules", "check") or find("torch._dynamo.skipfiles", "check")
    return bool(check is not None and check(code))


def forget_code(code: CodeType) -> None:
    """Take all cache entries of ``code`` away."""
    reset = find("torch._dynamo.eval_frame", "reset_code") or find("torch._C._dynamo.eval_frame", "reset_code")
    if reset is not None:
        _forgotten[id(code)] = code
        reset(code)


def looked_at_in_vain(code: CodeType) -> bool:
    """Whether Dynamo has been asked to compile ``code``, and has no cache entry to show for it."""
    seen = find("torch._dynamo.convert_frame", "input_codes")
    lookup = find("torch._dynamo.eval_frame", "_debug_get_cache_entry_list")
    if seen is None or lookup is None or id(code) in _forgotten:
        return False
    return code in seen and not lookup(code)


def is_torchs(code: CodeType) -> bool:
    """Whether code is in a file of torch's."""
    root = os.path.dirname(str(module("torch").__file__))
    return code.co_filename.startswith(root + os.sep)


def innermost_backend(callback: Any) -> Any:
    """The backend of the user's in what Dynamo put around it, as its cache entries know it."""
    names = ("_torchdynamo_orig_backend", "_torchdynamo_orig_callable")  # the second up to 2.7
    inner = next((getattr(callback, name) for name in names if hasattr(callback, name)), None)
    return callback if inner is None else innermost_backend(inner)


def guards_of(entry: Any) -> Any:
    """The guards of a cache entry; PyTorch up to 2.5 calls them ``check_fn``."""
    return getattr(entry, "guard_manager", None) or getattr(entry, "check_fn", None)


_CACHES_OFF = (
    ("torch._inductor.config", "fx_graph_cache", False),
    ("torch._inductor.config", "fx_graph_remote_cache", False),
    ("torch._functorch.config", "enable_autograd_cache", False),
)

_LAUNCHES_TOLD = (("torch._inductor.config.trace", "provenance_tracking_level", 1),)


def switch_caches_off() -> Callable[[], None]:
    """Keep torch from using its caches of compiled graphs; answers the function that puts the settings back."""
    return _set(_CACHES_OFF)


def have_launches_told() -> Callable[[], None]:
    """Let Inductor say which nodes each kernel computes: 2.9 does only if asked to, which makes other entries in its
    caches. Answers the function that puts the setting back."""
    return _set(_LAUNCHES_TOLD)


def _set(settings: Iterable[Tuple[str, str, Any]]) -> Callable[[], None]:
    """Settings of torch's, where it has them; answers the function that puts them back."""
    changed: List[Tuple[Any, str, Any]] = []

    def undo() -> None:
        while changed:
            setattr(*changed[-1])
            changed.pop()

    registered(undo)
    for name, switch, value in settings:
        config = find(*name.rsplit(".", 1))
        if config is not None and hasattr(config, switch):
            changed.append((config, switch, getattr(config, switch)))
            setattr(config, switch, value)
    return undo


def compiles_elsewhere() -> bool:
    """Whether Inductor sends graphs to another process, or takes them through the form in which it would."""
    mode = find("torch._inductor.compile_fx", "fx_compile_mode")
    return getattr(mode, "name", "NORMAL") != "NORMAL"


def lines_of_generated(path: str) -> List[Tuple[int, str]]:
    """From which line of a module that Inductor generated on the code comes from which stack of the user."""
    known = getattr(find("torch._inductor.codecache", "PyCodeCache"), "linemaps", {}).get(path) or ()
    if len(known) != 2:
        return []
    return [(int(line), stack) for line, stack in zip(*known) if isinstance(stack, str)]


def module(name: str) -> Any:
    """The module of that name; raises ``ImportError`` where this torch has none."""
    return importlib.import_module(name)


def distributed_rank() -> Optional[int]:
    """The rank of this process among those of a distributed program; ``None`` where there is only one."""
    distributed: Any = sys.modules.get("torch.distributed")  # if it is not imported, nobody has initialized it
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_rank()) if distributed.get_world_size() > 1 else None
    rank, size = os.environ.get("RANK", ""), os.environ.get("WORLD_SIZE", "")  # as torchrun sets them
    return int(rank) if rank.isdigit() and size.isdigit() and int(size) > 1 else None


def torch_version() -> str:
    """What this torch calls its version."""
    return str(getattr(sys.modules.get("torch"), "__version__", ""))


def tells_runs() -> bool:
    """Whether this torch tells when transformed code runs (see ``run_callback``)."""
    return find("torch._C._dynamo.eval_frame", "set_bytecode_debugger_callback") is not None


def cache_directory() -> str:
    """The directory where torch keeps its compile caches."""
    where = find("torch._inductor.runtime.cache_dir_utils", "cache_dir") or find(
        "torch._inductor.runtime.runtime_utils", "cache_dir"
    )
    return str(where()) if where is not None else os.path.join(tempfile.gettempdir(), "depyf")


_SET_BY_TORCH = (".deterministic", ".fake_tensor_allow_unsafe_data_ptr_access", "_cache")
"""Told as changed though nobody did: one stands for another setting, one is set while Dynamo traces; and the caches
that we switch off."""


def settings_that_were_changed() -> List[str]:
    """Statements that give Inductor and AOTAutograd the settings of this process, as far as they can be written."""
    statements: List[str] = []
    for name in ("torch._inductor", "torch._functorch"):
        config = find(name, "config") if name + ".config" in sys.modules else None
        tell = getattr(config, "codegen_config", None)
        defaults = getattr(config, "_config", {})
        for line in tell().splitlines() if tell is not None else ():
            setting, _, text = line.partition(" = ")
            try:
                value = ast.literal_eval(parse(text, "eval"))
            except synchronous(ValueError, SyntaxError):
                continue
            known = defaults.get(setting.partition(".config.")[2])
            # A setting that was changed for a while, and put back, is told as well.
            if not setting.endswith(_SET_BY_TORCH) and (known is None or getattr(known, "default", known) != value):
                statements.append(line)
    return statements


def settings_no_script_has() -> List[str]:
    """The settings of Inductor and AOTAutograd that hold functions or other objects of this program, such as passes."""
    found: List[str] = []
    for name in ("torch._inductor", "torch._functorch"):
        config = find(name, "config") if name + ".config" in sys.modules else None
        for setting, entry in dict(getattr(config, "_config", {})).items():
            if getattr(entry, "deprecated", False) or getattr(entry, "justknob", None) or setting.startswith("_"):
                continue
            value = getattr(config, setting, None)
            if value is not None and value is not getattr(entry, "default", None) and _is_of_a_program(value):
                found.append(f"{name}.config.{setting}, which is no plain value")
    return found


def _is_of_a_program(value: Any) -> bool:
    module = getattr(value, "__module__", None) if callable(value) else type(value).__module__
    return str(module).partition(".")[0] not in ("torch", "builtins")


def name_of_captured(module: Any) -> Optional[str]:
    """``__compiled_fn_<n>`` of the graph module that Dynamo hands to a backend now; None where it does not say.

    The name is a local variable of the function of Dynamo's that calls the backend.
    """
    caller: Optional[FrameType] = sys._getframe(1)
    while caller is not None:
        if caller.f_globals.get("__name__") == "torch._dynamo.output_graph":
            name = caller.f_locals.get("name")
            if isinstance(name, str) and name.startswith("__compiled_fn"):
                return "_".join(name.split("_")[:5])
        caller = caller.f_back
    return None


def sizes_that_dynamo_has_seen() -> Optional[Any]:
    """The table, by code, from which Dynamo tells which sizes vary; None where this torch keeps it elsewhere."""
    read = find("torch._dynamo.pgo", "get_code_state")
    return None if read is None else read()


def forget_entry(guards: Any) -> None:
    """Make the cache entry with these guards invalid: it stays in Dynamo's list, unused, and counts for no limit."""
    deleted = find("torch._dynamo.guards", "DeletedGuardManagerWrapper")
    entry, owner = getattr(guards, "cache_entry", None), getattr(guards, "extra_state", None)
    if deleted is not None and entry is not None and owner is not None:
        removed = deleted(REMOVED)
        # It must not count as one for the same objects: the limit.
        removed.id_matched_objs = {"depyf": object}
        owner.invalidate(entry, removed)


def has_regions() -> bool:
    """Whether this torch (2.13) can keep the cache entries of one ``torch.compile`` apart from those of others."""
    return find("torch._dynamo.eval_frame", "_get_cache_entries_for_region") is not None


def registered_backend(name: str, required: bool = False) -> Any:
    """The backend of that name; None where torch has none, or, if it is ``required``, what torch raises then."""
    lookup: Any = find("torch._dynamo.backends.registry", "lookup_backend")
    return lookup(name) if required or name in names_of_backends() else None


def names_of_backends() -> List[str]:
    """The names of all backends that torch knows."""
    known = find("torch._dynamo.backends.registry", "list_backends")
    return [] if known is None else list(known(exclude_tags=()))
