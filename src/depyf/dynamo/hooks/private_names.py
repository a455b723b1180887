"""Every private name of PyTorch that depyf relies on: one table, with what is lost without it. A row is a constant;
code uses the row (``CACHE_ENTRY_LIST.find()``) and never spells PyTorch's name itself:
``tests/dynamo/hooks/test_private_names.py`` checks this, and resolves every row that the installed PyTorch should have.
``tools/show/show_private_names.py`` prints the table with what is present and what uses it.

``since`` and ``until`` are the first and the last release with the name, as far as depyf supports it (2.2 and later).
They were tested with 2.2.2, 2.4.1, 2.7.1, 2.13.0 and 2.15.0 (``docs/compatibility.md``), and not in between. Names in
code that PyTorch generates or in its log are in ``torch_trace``, and settings with a public name are not rows.
"""

from __future__ import annotations

import functools
from typing import Dict, Iterator, Tuple

from depyf.base.own_builtins import keep_builtins
from depyf.dynamo.hooks.torch_names import PrivateName
from depyf.torch_trace.events import FORWARD_METRICS, GRAPH_BREAK, RECOMPILATION

keep_builtins(globals())

_Name = PrivateName
_Word = functools.partial(PrivateName, in_text=True)

_EVAL_FRAME = "torch._dynamo.eval_frame"
_EVAL_FRAME_C = "torch._C._dynamo.eval_frame"
_CONVERT_FRAME = "torch._dynamo.convert_frame"
_OUTPUT_GRAPH = "torch._dynamo.output_graph"
_GUARDS = "torch._dynamo.guards"
_GUARDS_C = "torch._C._dynamo.guards"
_COMPILE_FX = "torch._inductor.compile_fx"
_CODECACHE = "torch._inductor.codecache"
_AOT = "torch._functorch.aot_autograd"
_CUSTOM_OPS = "torch._library.custom_ops"
_RUNTIME_WRAPPERS = "torch._functorch._aot_autograd.runtime_wrappers"
_DISPATCH = "torch.utils._python_dispatch"
_INDUCTOR_CONFIG = "torch._inductor.config"

# Which frames Dynamo compiles

_NOT_OBSERVED = "probe, find_nonfinite and compare can't observe compiled graphs"
CALLBACK_FROM_STANCE = _Name(_EVAL_FRAME, "_callback_from_stance", _NOT_OBSERVED, "2.6")
SET_STANCE = _Name(_EVAL_FRAME, "_set_stance", "debug() and compare can't restore the stance", "2.6")
STANCE = _Name(_EVAL_FRAME, "_stance", "what a stance keeps from being compiled is not said", "2.6")
SET_EVAL_FRAME = _Name(_EVAL_FRAME, "set_eval_frame", "debug() can't keep Dynamo from compiling")
SET_EVAL_FRAME_IN_C = _Name(_EVAL_FRAME_C, "set_eval_frame", "depyf's own code is compiled where it runs")
SKIP_CODE = _Name(_EVAL_FRAME, "skip_code", "no code runs from files of the dump")
SKIP_CODE_IN_C = _Name(_EVAL_FRAME_C, "skip_code", "no code runs from files of the dump", until="2.6")
SERIALIZED_CODE = _Name(
    "torch._dynamo.package", "SerializedCode.from_code_object", "saved code names files of the dump", "2.8"
)
ADD_SKIPPED = _Name("torch._dynamo.trace_rules", "add", "depyf's files may be compiled", "2.3")
ADD_SKIPPED_BEFORE = _Name("torch._dynamo.skipfiles", "add", "depyf's files may be compiled", until="2.2")
CHECK_SKIPPED = _Name("torch._dynamo.trace_rules", "check", "plain wrappers are treated as compiled functions", "2.3")
CHECK_SKIPPED_BEFORE = _Name(
    "torch._dynamo.skipfiles", "check", "plain wrappers are treated as compiled functions", until="2.2"
)
CALLBACK_RESULT = _Name("torch._dynamo.types", "ConvertFrameReturn", _NOT_OBSERVED, "2.7")
FRAME_STRATEGY = _Name("torch._dynamo.types", "FrameExecStrategy", _NOT_OBSERVED, "2.7")
FRAME_ACTION = _Name("torch._dynamo.types", "FrameAction", _NOT_OBSERVED, "2.7")
CLONE_WITH_BACKEND = _Word(_CONVERT_FRAME, "_clone_with_backend", _NOT_OBSERVED)
FN = _Word(_EVAL_FRAME, "_fn", _NOT_OBSERVED)
COMPILE_WRAPPER = _Word(_EVAL_FRAME, "compile_wrapper", _NOT_OBSERVED, "2.9")
COMPILED_FUNCTION = _Word(_EVAL_FRAME, "fn", "shadow samples no calls")
DYNAMO_RESET = _Name("torch._dynamo", "reset", "what is compiled before torch._dynamo.reset is lost")
OPTIMIZE = _Name("torch._dynamo", "optimize", "compare can't bisect")
OPTIMIZE_CONTEXT = _Name(_EVAL_FRAME, "OptimizeContext", "the lines that call torch.compile are not known")
DYNAMO_CONFIG = _Name("torch._dynamo", "config", "settings are not read")

# What runs

_NO_TRACE = "trace uses sys.monitoring instead, and functions compiled before are not dumped"
SET_RUN_CALLBACK = _Name(_EVAL_FRAME_C, "set_bytecode_debugger_callback", _NO_TRACE, "2.13")
GET_RUN_CALLBACK = _Name(_EVAL_FRAME_C, "get_bytecode_debugger_callback", _NO_TRACE, "2.13")

# Compiled callables

WRAP_INLINE = _Name("torch._dynamo.external_utils", "wrap_inline", "compiled modules of PyTorch are called `inner`")
ORIGINAL_CALLABLE = _Word(_EVAL_FRAME, "_torchdynamo_orig_callable", "compiled functions are not known")
ORIGINAL_BACKEND = _Word(_EVAL_FRAME, "_torchdynamo_orig_backend", "the backend of a cache entry is not known", "2.8")
DISABLED = _Word(_EVAL_FRAME, "_torchdynamo_disable", "disabled functions are not known")
OPTIMIZED_MODULE = _Name(_EVAL_FRAME, "OptimizedModule", "compiled modules are not known")
ORIGINAL_MODULE = _Word(_EVAL_FRAME, "_orig_mod", "compiled modules are not known")
DYNAMIC = _Word(_EVAL_FRAME, "_dynamic", "compare and extract compile with dynamic=None", "2.4")
FORWARD_OF_COMPILED = _Word(_EVAL_FRAME, "_forward", "compiled modules are not followed")
COMPILED_CALL = _Word("torch.nn.modules.module", "_compiled_call_impl", "Module.compile is not seen")
CALL_OF_MODULE = _Name("torch.nn", "Module._call_impl", "calls of modules are not followed")
WRAPPED_CALL_OF_MODULE = _Name("torch.nn", "Module._wrapped_call_impl", "calls of modules are not followed")
_NO_HOOKS = "hooks of modules are not seen"
FORWARD_HOOKS = _Word("torch.nn.modules.module", "_forward_hooks", _NO_HOOKS)
FORWARD_PRE_HOOKS = _Word("torch.nn.modules.module", "_forward_pre_hooks", _NO_HOOKS)
BACKWARD_HOOKS = _Word("torch.nn.modules.module", "_backward_hooks", _NO_HOOKS)
_NO_TENSORS_OF_MODULES = "compare does not copy tensors of modules"
PARAMETERS = _Word("torch.nn.modules.module", "_parameters", _NO_TENSORS_OF_MODULES)
BUFFERS = _Word("torch.nn.modules.module", "_buffers", _NO_TENSORS_OF_MODULES)
MODULES = _Word("torch.nn.modules.module", "_modules", "what hides a submodule is not named")

# Cache entries

_NO_ENTRIES = "cache entries and their guards can't be read"
CACHE_ENTRY_LIST = _Name(_EVAL_FRAME, "_debug_get_cache_entry_list", _NO_ENTRIES)
CACHE_ENTRIES_OF_REGION = _Name(
    _EVAL_FRAME, "_get_cache_entries_for_region", "entries of isolate_recompiles are not distinguished", "2.13"
)
NUMBER_OF_ENTRIES = _Name(
    _EVAL_FRAME, "_get_total_cache_entry_count", "entries of isolate_recompiles do not count for a limit", "2.13"
)
_NO_REGIONS = "observing counts for the limits of recompilation"
NEXT_REGION = _Name(_EVAL_FRAME, "_next_isolate_recompiles_id", _NO_REGIONS, "2.13")
GET_REGION = _Name(_EVAL_FRAME_C, "get_eval_frame_isolate_recompiles_id", _NO_REGIONS, "2.13")
SET_REGION = _Name(_EVAL_FRAME_C, "set_eval_frame_isolate_recompiles_id", _NO_REGIONS, "2.13")
REGION = _Word(_EVAL_FRAME, "_isolate_recompiles_id", _NO_REGIONS, "2.13")
RESET_CODE = _Name(_EVAL_FRAME, "reset_code", "force_recompile keeps what was compiled before")
RESET_CODE_IN_C = _Name(_EVAL_FRAME_C, "reset_code", "force_recompile keeps what was compiled before")
INPUT_CODES = _Name(_CONVERT_FRAME, "input_codes", "functions that Dynamo gave up before are not named")
DELETED_GUARDS = _Name(_GUARDS, "DeletedGuardManagerWrapper", "entries made to observe stay valid", "2.6")
CHECK_FN = _Word(_GUARDS, "check_fn", "guards can't be read", until="2.5")
DIFFERENTIATING = _Word(_GUARDS, "diff_guard_root", "what skip_guard_eval_unsafe runs is not known", "2.6")
RECOMPILED_FRAME = _Word(_GUARDS, "frame", "findings do not name members of enums and classes", "2.4")
FAILED_ENTRIES = _Word(_GUARDS, "cache_entries", "findings do not name what differs in metadata", "2.13")
GUARD_MANAGER = _Word(_GUARDS, "guard_manager", "guards can't be read", "2.4")
SIZES_SEEN = _Name("torch._dynamo.pgo", "get_code_state", "copies forget which sizes vary", "2.6")

# Guards

ABSENT_ITEMS = _Name(_GUARDS, "GuardBuilder.SET_NOT_CONTAINS", "guards on absent items read as present", "2.12")
PRESENT_ITEMS = _Name(_GUARDS, "GuardBuilder.SET_CONTAINS", "guards on items of sets are not reported", "2.8")
OVERLAPPING = _Name(_GUARDS_C, "compute_overlapping_tensors", "guards on shared memory are not evaluated", "2.7")
GLOBAL_STATE = _Name(_GUARDS_C, "GlobalStateGuard", "guards on the global state are not evaluated")
FUNCTION_MODES = _Name(
    "torch._dynamo.utils", "get_torch_function_mode_stack", "guards on modes are not evaluated", "2.6"
)
_SAVED = "torch._functorch._aot_autograd.utils"
SAVED_TENSORS_HOOKS = _Name(_SAVED, "top_saved_tensors_hooks", "guards on them are not evaluated", "2.8")
SAVED_TENSORS_HOOKS_INLINED = _Name(
    _SAVED, "saved_tensors_hooks_are_inlineable", "guards on them are not evaluated", "2.8"
)
FAKE_SCRIPT_OBJECT = _Name(
    "torch._library.fake_class_registry", "FakeScriptObject", "guards on script objects fail", "2.3"
)
_NO_DISPATCH_KEYS = "guards on dispatch keys are not evaluated"
DISPATCH_KEYS = _Name("torch._C", "_dispatch_keys", _NO_DISPATCH_KEYS)
INCLUDED_KEYS = _Name("torch._C", "_dispatch_tls_local_include_set", _NO_DISPATCH_KEYS)
EXCLUDED_KEYS = _Name("torch._C", "_dispatch_tls_local_exclude_set", _NO_DISPATCH_KEYS)
NAMES_IN_GUARDS = _Name(_GUARDS, "_get_closure_vars", "functions in guards are not known", "2.6")
NAMES_IN_GUARDS_BEFORE = _Name(_GUARDS, "CLOSURE_VARS", "functions in guards are not known", until="2.5")
_NO_MARKS = "guards on marked dimensions are not evaluated"
DYNAMIC_MARK = _Word(_GUARDS, "_dynamo_dynamic_indices", _NO_MARKS)
WEAK_DYNAMIC_MARK = _Word("torch._dynamo.decorators", "_dynamo_weak_dynamic_indices", _NO_MARKS)
UNBACKED_MARK = _Word("torch._dynamo.decorators", "_dynamo_unbacked_indices", _NO_MARKS, "2.5")
STRICT_UNBACKED_MARK = _Word("torch._dynamo.decorators", "_dynamo_strict_unbacked_indices", _NO_MARKS, "2.7")
STATIC_MARK = _Word("torch._dynamo.decorators", "_dynamo_static_indices", _NO_MARKS)

# Compilations

COMPILE_CONTEXT = _Name("torch._guards", "CompileContext", "compilations have no ids")
TRACING_CONTEXT = _Name("torch._guards", "TracingContext", "backward graphs compiled lazily have no id")
COMPILE_ID = _Word(_CONVERT_FRAME, "compile_id", "which compilation failed is not known")
FRAME = _Word(_CONVERT_FRAME, "frame", "the values of global names are not known")
CODE = _Word(_CONVERT_FRAME, "code", "which function is compiled is not known")
IS_BACKWARD = _Word(_COMPILE_FX, "is_backward", "kernels of backward graphs are not distinguished")
NAME_OF_GRAPH = _Word(_OUTPUT_GRAPH, "name", "compare can't name the graph")
REGISTER_BYTECODE_HOOK = _Name(_CONVERT_FRAME, "register_bytecode_hook", "transformed code can't be captured")
BYTECODE_HOOKS = _Name(_CONVERT_FRAME, "_bytecode_hooks", "a hook may stay when entering is interrupted")
BYTECODE_LOG = _Name(_CONVERT_FRAME, "bytecode_log", "the bytecode log can't be found")
ORIGINAL_CODES = _Name("torch._dynamo.utils", "orig_code_map", "code compiled before is not known")
ADD_SKIP_REASON = _Name(_CONVERT_FRAME, "add_skip_reason", "why a frame is skipped is guessed", "2.13")
FORMAT_ERROR = _Name(_CONVERT_FRAME, "format_error_msg", "errors that fall back to eager are not recorded")
COMPILATION_METRICS = _Name(
    "torch._dynamo.utils", "_compilation_metrics", "why does not know that the last compilation raised", "2.4"
)
METRICS_CONTEXT = _Name(
    "torch._dynamo.utils", "get_metrics_context", "attach does not know for how long a compilation has run", "2.6"
)
METRICS_BEGUN = _Word(
    "torch._dynamo.metrics_context",
    "_start_time_ns",
    "attach does not know for how long a compilation has run",
    "2.6",
)
FAILED_GUARDS = _Name("torch._dynamo.utils", "guard_failures", "attach knows no guard that failed")
COUNTERS = _Name("torch._dynamo.utils", "counters", "attach shows no counters")
ONE_GRAPH = _Word(_CONVERT_FRAME, "_one_graph", "why does not know fullgraph=True", "2.3")
LIMIT_OF_CALLBACK = _Word(
    _CONVERT_FRAME, "_recompile_limit", "why does not know torch.compile(recompile_limit=)", "2.13"
)
BREAKS_RAISE = _Word(_EVAL_FRAME, "error_on_graph_break", "why does not know error_on_graph_break", "2.8")
EXAMPLE_INPUTS = _Name(_EVAL_FRAME, "_EXAMPLE_INPUTS", "why does not know what eager_then_compile has run", "2.7")
LIMIT_RAISED = _Name("torch._dynamo.exc", "FailOnRecompileLimitHit", "the exception is not named", "2.6")
FULLGRAPH_COUNT = _Name(
    _EVAL_FRAME_C, "set_fullgraph_compiled_frame_count", "why does not know that fullgraph=True raises", "2.13"
)
GUARD_FILTER = _Word("torch._dynamo.hooks", "guard_filter_fn", "guards that were dropped are not named as such", "2.8")
DYNAMO_HOOKS = _Word(_CONVERT_FRAME, "hooks", "guards that were dropped are not named as such")
BUILD_GUARDS = _Name(
    _GUARDS, "CheckFunctionManager.build_guards", "shadow does not know which guards were dropped", "2.8"
)
UNSUPPORTED = _Name("torch._dynamo.exc", "Unsupported", "graph breaks are treated as errors")
USER_ERROR = _Name("torch._dynamo.exc", "UserError", "graph breaks are treated as errors")
SKIP_FRAME = _Name("torch._dynamo.exc", "SkipFrame", "graph breaks that skip a frame are not noted")
_NO_NAMES = "graph files can't be named after their __compiled_fn"
MAKE_NAME = _Name(_OUTPUT_GRAPH, "make_compiled_fn_name", _NO_NAMES, "2.14")
MAKE_NAME_BEFORE = _Name(_OUTPUT_GRAPH, "unique_id", _NO_NAMES, until="2.14")
BREAK_REASON = _Name(_OUTPUT_GRAPH, "GraphCompileReason", "graph breaks are not noted")
FORMAT_GRAPH = _Name("torch._dynamo.utils", "lazy_format_graph_code", "graphs that are printed can't be dumped")
RECOMPILE_REASONS = _Name(
    _CONVERT_FRAME,
    "get_and_maybe_log_recompilation_reason",
    "why PyTorch before 2.4 recompiles is not noted",
    until="2.4",
)
RECORD_METRICS = _Name(
    _CONVERT_FRAME, "record_compilation_metrics", "ends are not noted before 2.4", "2.4", until="2.5"
)
LOG_COMPILATION = _Name(_CONVERT_FRAME, "log_compilation_event", "ends are not noted before 2.4", until="2.3")
TRANSLATOR = _Name("torch._dynamo.symbolic_convert", "InstructionTranslator", "probe knows no names")
INLINING_TRANSLATOR = _Name(
    "torch._dynamo.symbolic_convert", "InliningInstructionTranslator", "probe knows no names in called functions"
)
GENERATOR_TRANSLATOR = _Name(
    "torch._dynamo.symbolic_convert",
    "InliningGeneratorInstructionTranslator",
    "probe knows no names in called generators",
)
AOT_COMPILE = _Name(
    "torch._dynamo.aot_compile", "aot_compile_fullgraph", "kernels of aot_compile belong to no graph", "2.9"
)

# The structured trace

LOGGING_INTERNAL = _Name("torch._logging", "_internal", "the trace is not enabled")
TRACE_STRUCTURED = _Name(
    "torch._logging._internal",
    "trace_structured",
    "the structured trace is not read, as failures of PyTorch's descriptions could not be kept from the program",
    "2.3",
)
INTERN_TABLE = _Name("torch._logging.structured", "INTERN_TABLE", "file names are numbers in frames", "2.3")
EVENT_SENDERS: Dict[str, PrivateName] = {
    event: _Word(module, event, lost, since)
    for event, module, lost, since in (
        ("before_pre_grad_graph", _COMPILE_FX, "comes from a hook instead", "2.8"),
        ("before_post_grad_graph", _COMPILE_FX, "comes from a hook instead", "2.8"),
        (GRAPH_BREAK, "torch._dynamo.symbolic_convert", "comes from a hook instead", "2.6"),
        (FORWARD_METRICS, "torch._dynamo.utils", "comes from a hook instead", "2.4"),
        (RECOMPILATION, _GUARDS, "comes from a hook instead", "2.6"),
        ("dynamo_output_graph", _OUTPUT_GRAPH, "comes from a hook instead", "2.3"),
    )
}
"""The trace events that come from hooks if a PyTorch lacks them, and the modules that send them."""

# AOTAutograd

AOT_COMPILE_GRAPHS = _Name(_AOT, "aot_stage2_compile", "backward graphs are not observed", "2.9")
AOT_COMPILE_GRAPHS_BEFORE = _Name(
    _AOT, "create_aot_dispatcher_function", "backward graphs are not observed", until="2.8"
)
AOT_MODULE = _Name(_AOT, "aot_module_simplified", "compare can't name the stage that differs")
DEFAULT_PARTITION = _Name("torch._functorch.partitioners", "default_partition", "compare can't split joint graphs")
AOT_CONFIG = _Name("torch._functorch", "config", "observed graphs come out of caches")
_NOT_FROM_FILES = "AOTAutograd's wrappers don't run from files"
EXEC_WRAPPER = _Name("torch._functorch._aot_autograd.codegen", "_compile_and_exec_source", _NOT_FROM_FILES, "2.14")
EXEC_SUBCLASS_WRAPPER = _Name(
    "torch._functorch._aot_autograd.subclass_codegen", "_compile_and_exec_source", _NOT_FROM_FILES, "2.13"
)
_NO_BACKWARD = "backward graphs are not observed or timed"
BACKWARD_IMPL = _Word(_RUNTIME_WRAPPERS, "_backward_impl", _NO_BACKWARD, "2.7")
LAZY_BACKWARD = _Word(
    _RUNTIME_WRAPPERS, "_lazy_backward_info", "it is not said that a backward is not compiled yet", "2.5"
)
BOXED_CALL = _Word("torch._functorch._aot_autograd.utils", "_boxed_call", "observed graphs get arguments wrongly")
BOXED_NOP = _Name("torch._dynamo.backends.debugging", "boxed_nop", "aot_eager runs graphs by an interpreter")

# Inductor

DYNAMO = _Name("torch._dynamo", "", "nothing of torch.compile is seen")
_UNDER_VMAP = "find_nonfinite can't look into the functions of flex_attention"
IS_WRAPPED = _Name("torch._C._functorch", "is_functorch_wrapped_tensor", _UNDER_VMAP)
UNWRAPPED = _Name("torch._C._functorch", "get_unwrapped", _UNDER_VMAP)
FUNCTORCH = _Name("torch._functorch", "", "what a compiled function holds is not found")
INDUCTOR = _Name("torch._inductor", "", "the random numbers of Inductor are not replayed")
INDUCTOR_CONFIG = _Name("torch._inductor", "config", "compare draws other random numbers")
BISECTOR = _Name("torch._inductor.compiler_bisector", "CompilerBisector", "compare can't bisect", "2.6")
_CACHED = "force_recompile does not keep graphs out of caches"
GRAPH_CACHE = _Name(_INDUCTOR_CONFIG, "fx_graph_cache", _CACHED)
REMOTE_GRAPH_CACHE = _Name(_INDUCTOR_CONFIG, "fx_graph_remote_cache", _CACHED, "2.4")
AOT_CACHE = _Name("torch._functorch.config", "enable_autograd_cache", _CACHED, "2.5")
PROVENANCE_LEVEL = _Name(
    _INDUCTOR_CONFIG, "trace.provenance_tracking_level", "launches of kernels are not tied to nodes", "2.9"
)
COMPILE_FX = _Name(_COMPILE_FX, "compile_fx", "kernels compiled outside of Dynamo belong to no graph")
COMPILE_FX_INNER = _Name(_COMPILE_FX, "_compile_fx_inner", "graphs that Inductor compiles are not observed", "2.6")
COMPILE_MODE = _Name(_COMPILE_FX, "fx_compile_mode", "graphs compiled elsewhere lack files without a word", "2.6")
PRE_GRAD_PASSES = _Name(_COMPILE_FX, "pre_grad_passes", "graphs before Inductor's first passes are missing")
RECURSIVE_PRE_GRAD_PASSES = _Name(
    _COMPILE_FX, "_recursive_pre_grad_passes", "graphs before Inductor's first passes are missing", "2.4"
)
POST_GRAD_PASSES = _Name(_COMPILE_FX, "post_grad_passes", "graphs before Inductor's last passes are missing")
RECURSIVE_POST_GRAD_PASSES = _Name(
    _COMPILE_FX, "_recursive_post_grad_passes", "graphs before Inductor's last passes are missing", "2.4"
)
PY_CODE_CACHE = _Name(_CODECACHE, "PyCodeCache", "Inductor's kernels can't be dumped")
LINE_MAPS = _Name(_CODECACHE, "PyCodeCache.linemaps", "lines of kernels are not tied to the user's")
LOADED_MODULES = _Name(_CODECACHE, "PyCodeCache.modules", "profile sees no kernels that were compiled before", "2.6")
RECORD_FUNCTION_FAST = _Name("torch._C._profiler", "_RecordFunctionFast", "profile sees no kernels of C++")
GUARDED_CACHE = _Name(_CODECACHE, "GuardedCache", "stages that a warm cache skips are not stored", "2.8")
AOT_HITS = _Name("torch._functorch._aot_autograd.autograd_cache", "AOTAutogradCache", "stages may stand twice", "2.5")
ASYNC_COMPILE = _Name(
    "torch._inductor.async_compile", "AsyncCompile", "attach says of kernels that they are lowered", "2.4"
)
KERNEL_POOL = _Name(
    "torch._inductor.async_compile",
    "AsyncCompile.pool",
    "shadow checks no call after Inductor has built a kernel",
    "2.4",
)
LAUNCH_TRACER = _Name(
    "torch._inductor.debug", "set_kernel_post_grad_provenance_tracing", "launches of kernels have no nodes", "2.8"
)
_SCHEDULER = "torch._inductor.scheduler"
_CPP = "torch._inductor.codegen.cpp"
_NOT_FUSED = "why kernels are not fused is not said"
WHY_NO_FUSE = _Name(_SCHEDULER, "WhyNoFuse.__call__", _NOT_FUSED)
FIRST_NOT_FUSED = _Word(_SCHEDULER, "WhyNoFuse.name1", _NOT_FUSED, "2.8")
SECOND_NOT_FUSED = _Word(_SCHEDULER, "WhyNoFuse.name2", _NOT_FUSED, "2.8")
FUSE_NODES = _Name(_SCHEDULER, "Scheduler.fuse_nodes", _NOT_FUSED)
UNFUSABLE = _Name(_SCHEDULER, "Scheduler.unfusable_node", _NOT_FUSED, "2.6")
USED_BUFFERS = _Name(_SCHEDULER, "BaseSchedulerNode.used_buffer_names", _NOT_FUSED)
WRITTEN_BUFFERS = _Name(_SCHEDULER, "BaseSchedulerNode.get_buffer_names", _NOT_FUSED, "2.5")
NODE_NAME = _Name(_SCHEDULER, "BaseSchedulerNode.get_name", _NOT_FUSED)
NODE_GROUP = _Word(_SCHEDULER, "BaseSchedulerNode.group", _NOT_FUSED)
OPERATION_NAME = _Name("torch._inductor.ir", "Operation.get_operation_name", _NOT_FUSED, "2.5")
CPP_FUSES_VERTICALLY = _Name(_CPP, "CppScheduling.can_fuse_vertical", _NOT_FUSED)
CPP_FUSES_HORIZONTALLY = _Name(_CPP, "CppScheduling.can_fuse_horizontal", _NOT_FUSED)
GRAPH_TRANSFORM_OBSERVER = _Name(
    "torch.fx.passes.graph_transform_observer", "GraphTransformObserver", "passes over graphs are not listed", "2.4"
)
CACHE_DIRECTORY = _Name("torch._inductor.runtime.cache_dir_utils", "cache_dir", "another folder is used", "2.6")
CACHE_DIRECTORY_BEFORE = _Name("torch._inductor.runtime.runtime_utils", "cache_dir", "another folder is used", "2.4")
UNSET_SETTING = _Name("torch.utils._config_module", "_UNSET_SENTINEL", "settings are read slowly", "2.6")
SAVED_CONFIG = _Word("torch.utils._config_module", "_config", "scripts lack settings")
TRANSFORMS = _Name("torch._C._functorch", "peek_interpreter_stack", "runs of shadow are seen by torch.func")
COMPILED_AUTOGRAD = _Name(
    "torch._dynamo.compiled_autograd", "compiled_autograd_enabled", "shadow compiles backwards with compiled autograd"
)
PROFILER_IS_ON = _Name("torch.autograd.profiler", "_is_profiler_enabled", "the profiler records runs of shadow")
BACKWARD_NODE = _Name("torch.autograd.function", "BackwardCFunction", "debuggers don't stop in autograd's threads")
SEQUENCE_NUMBER = _Name("torch._C._autograd", "_get_sequence_nr", "lines of backwards are not known")
SEQUENCE_NUMBER_BEFORE = _Name("torch.autograd", "_get_sequence_nr", "lines of backwards are not known")
CURRENT_NODE = _Name("torch._C", "_current_autograd_node", "operations of backwards are not distinguished")
SEQUENCE_OF_NODE = _Name("torch._C", "_FunctionBase._sequence_nr", "lines of backwards are not known")

# Backends

LOOKUP_BACKEND = _Name("torch._dynamo.backends.registry", "lookup_backend", "backends have no names")
REGISTER_BACKEND = _Name(
    "torch._dynamo.backends.registry", "register_backend", "scripts can't define the program's backend"
)
AOT_BACKEND = _Name("torch._dynamo.backends.common", "AotAutograd", "scripts can't define the program's backend", "2.3")
LIST_BACKENDS = _Name("torch._dynamo.backends.registry", "list_backends", "backends have no names")

# Graphs, operators and tensors

GRAPH_MODULE = _Name("torch.fx.graph_module", "GraphModule", "graphs can't be stepped through")
TREE_FLATTEN = _Name("torch.utils._pytree", "tree_flatten", "values inside of containers are not checked")
TREE_MAP = _Name("torch.utils._pytree", "tree_map", "values inside of containers are not checked")
DISPATCH_MODES = _Name(_DISPATCH, "_get_current_dispatch_mode_stack", "find_nonfinite(eager=True) is not removed")
DISPATCH_MODE = _Name(_DISPATCH, "TorchDispatchMode", "operations are not seen one by one")
MODES_IN_GUARDS = _Name(
    _GUARDS_C, "set_is_in_mode_without_ignore_compile_internals", "profile can't list operations", "2.11"
)
DISABLE_MODES = _Name(_DISPATCH, "_disable_current_modes", "modes of the program see what depyf computes")
DISABLE_TORCH_FUNCTION = _Name("torch._C", "DisableTorchFunction", "modes of the program see what depyf computes")
FAKE_TENSOR = _Name("torch._subclasses.fake_tensor", "FakeTensor", "sizes of graphs are not known in scripts")
TRACER_OF_GRAPH = _Word("torch.fx.graph", "_tracer_cls", "copies of graphs lose their tracer")
ERASED = _Word("torch.fx.node", "_erased", "probe names nodes that are gone")
IN_SPEC = _Word("torch.fx.graph", "_in_spec", "graphs of export are not read")
OUT_SPEC = _Word("torch.fx.graph", "_out_spec", "graphs of export are not read")
SOURCE_OF_INPUT = _Word(_EVAL_FRAME, "_dynamo_source", "inputs have the graph's names")
SCHEMA = _Word("torch._ops", "_schema", "what operators write to is not known")
QUALIFIED_NAME = _Word("torch._ops", "_qualified_op_name", "scripts don't import operators")
OPERATORS = _Name("torch._ops", "", "scripts don't import operators")
PRIMS = _Name("torch._prims", "", "scripts don't import Inductor's operators")
STORAGE_ADDRESS = _Name("torch", "UntypedStorage._cdata", "tensors that share memory are not known")
DISPATCH_DUMP = _Name("torch._C", "_dispatch_dump", "scripts don't say what registers an operator")
CUSTOM_OPERATOR = _Name(_CUSTOM_OPS, "CustomOpDef", "operators of the program are not in scripts", "2.4")
CUSTOM_OPERATORS = _Name(_CUSTOM_OPS, "OPDEFS", "operators of the program are not in scripts", "2.4")
_NO_DEFINITION = "the definition of the program's operators is not in scripts"
INIT_FN = _Word(_CUSTOM_OPS, "_init_fn", _NO_DEFINITION, "2.4")
BACKEND_FNS = _Word(_CUSTOM_OPS, "_backend_fns", _NO_DEFINITION, "2.4")
ABSTRACT_FN = _Word(_CUSTOM_OPS, "_abstract_fn", _NO_DEFINITION, "2.4")
SETUP_CONTEXT_FN = _Word(_CUSTOM_OPS, "_setup_context_fn", _NO_DEFINITION, "2.4")
BACKWARD_FN = _Word(_CUSTOM_OPS, "_backward_fn", _NO_DEFINITION, "2.4")
VMAP_FN = _Word(_CUSTOM_OPS, "_vmap_fn", _NO_DEFINITION, "2.6")
AUTOCAST_DTYPE = _Word(_CUSTOM_OPS, "_autocast_dtype", _NO_DEFINITION, "2.13")
AUTOCAST_CPU_DTYPE = _Word(_CUSTOM_OPS, "_autocast_cpu_dtype", _NO_DEFINITION, "2.7", until="2.12")
AUTOCAST_CUDA_DTYPE = _Word(_CUSTOM_OPS, "_autocast_cuda_dtype", _NO_DEFINITION, "2.7", until="2.12")
NAMESPACE_OF_OPERATOR = _Word(_CUSTOM_OPS, "_namespace", _NO_DEFINITION, "2.4")
NAME_OF_OPERATOR = _Word(_CUSTOM_OPS, "_name", _NO_DEFINITION, "2.4")
QUALNAME_OF_OPERATOR = _Word(_CUSTOM_OPS, "_qualname", _NO_DEFINITION, "2.4")
OVERLOAD_OF_OPERATOR = _Word(_CUSTOM_OPS, "_opoverload", _NO_DEFINITION, "2.4")

# Modules that scripts import, because ``import torch`` does not

_NO_OPERATORS = "operators of this module are not registered in scripts"
RANDOM_PRIMS = _Name("torch._prims.rng_prims", "", _NO_OPERATORS)
REGISTER_RANDOM_PRIMS = _Name("torch._prims.rng_prims", "register_rng_prims", _NO_OPERATORS)
INDUCTOR_PRIMS = _Name("torch._inductor.inductor_prims", "", _NO_OPERATORS)
QUANTIZED_DECOMPOSED = _Name("torch.ao.quantization.fx._decomposed", "", _NO_OPERATORS)
FUNCTIONAL_COLLECTIVES = _Name("torch.distributed._functional_collectives", "", _NO_OPERATORS)

# Modules whose loggers say that CUDA graphs are not used

_NO_CUDAGRAPHS = "it is not said that CUDA graphs are skipped while code runs"
CUDAGRAPH_LOGGERS = (
    _Name("torch._inductor.cudagraph_utils", "", _NO_CUDAGRAPHS, "2.4"),
    _Name("torch._inductor.cudagraph_trees", "", _NO_CUDAGRAPHS),
    _Name(_COMPILE_FX, "", _NO_CUDAGRAPHS),
    _Name("torch._dynamo.backends.cudagraphs", "", _NO_CUDAGRAPHS),
)
CUDAGRAPH_MANAGER = _Name("torch._inductor.cudagraph_trees", "CUDAGraphTreeManager", "new recordings have no reason")


def table() -> Iterator[Tuple[str, PrivateName]]:
    """Yield every row with the name of its constant, in the order of this file."""
    for constant, value in list(globals().items()):
        rows = value.values() if isinstance(value, dict) and constant.isupper() else value
        for row in rows if not isinstance(rows, (PrivateName, str)) and constant.isupper() else (rows,):
            if isinstance(row, PrivateName):
                yield constant, row
