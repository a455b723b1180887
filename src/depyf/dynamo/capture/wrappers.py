"""Make the functions that AOTAutograd generates around compiled graphs run from files in the dump directory.

From 2.13 on AOTAutograd writes these wrappers as Python source (``_compile_and_exec_source``). Their ``co_filename`` is
``.../subclass_codegen.py:codegen(<name>)``: no file, and the same name for every graph, so no debugger can show them.
A module of its own: of what a compilation makes, the wrappers alone are no record of PyTorch's trace.
"""

from __future__ import annotations

import functools
from types import CodeType, FunctionType
from typing import Callable, List

from depyf.base.own_builtins import keep_builtins
from depyf.decompiler.syntax import nested_codes
from depyf.dynamo.capture.records import WrapperFile
from depyf.dynamo.capture.relocate import SourceFile
from depyf.dynamo.capture.session import Receivers
from depyf.dynamo.capture.what_runs import DOES_NOT_RUN, RUNS, RUNS_ELSEWHERE
from depyf.dynamo.hooks import frame_evaluation, generated_code
from depyf.dynamo.hooks.attribution import current_compile_id, current_piece
from depyf.dynamo.hooks.patching import Undo, replace_everywhere
from depyf.dynamo.hooks.safely import safely
from depyf.dynamo.store.names import file_stem
from depyf.torch_trace import file_names

keep_builtins(globals())


def watch_wrappers(receivers: Receivers) -> List[Undo]:
    """Start to write each generated wrapper to a file and run it from there; return the functions that stop it."""
    # 2.15 moved the function from ``subclass_codegen`` to ``codegen``. If a module imports it from the other, both
    # names are one object: each object is replaced once, in all modules that have it.
    originals = {id(maker.require()): maker for maker in generated_code.wrapper_makers()}
    return [
        replace_everywhere(maker.name, maker.require(), _generating_files(maker.require(), receivers))
        for maker in originals.values()
    ]


def _generating_files(original: Callable[..., object], receivers: Receivers) -> Callable[..., object]:
    @functools.wraps(original)
    def compile_and_exec_source(
        source: str, globals_dict: object, fn_name: str, artifact_name: str, *args: object, **kwargs: object
    ) -> object:
        function = original(source, globals_dict, fn_name, artifact_name, *args, **kwargs)
        _move_to_file(receivers, function, source, artifact_name)
        return function

    return compile_and_exec_source


@safely("writing an AOTAutograd wrapper")
def _move_to_file(receivers: Receivers, function: object, source: str, artifact: str) -> None:
    if not isinstance(function, FunctionType):
        return
    # ``artifact`` is torch's name of the wrapper, such as ``runtime_wrapper_orchestration``.
    compile_id = current_compile_id()
    for session in receivers():
        name = session.function_name(compile_id)
        kind = file_stem(artifact)
        number = session.directory.take_number(file_names.wrapper_stem(name, kind))
        text = f"# {RUNS if session.stepping else RUNS_ELSEWHERE}\n{session.stable.text(source)}\n"
        path = session.directory.write(session.in_stages(file_names.wrapper_file(name, kind, number)), text)
        if path is None:
            continue
        session.add(WrapperFile(compile_id, name, artifact, path, current_piece()))
        if not session.stepping:
            continue
        # With nested sessions the function moves once more for each; the last session is the innermost.
        moved = SourceFile(text, path).relocated(function.__code__)
        if moved is None:  # stable names have changed the text, so it compiles to something else
            session.directory.write(session.directory.name_of(path), text.replace(RUNS, DOES_NOT_RUN, 1))
            continue
        _skip_all(moved)
        function.__code__ = moved


def _skip_all(code: CodeType) -> None:
    # torch names these files as if they lay in torch/_functorch/, where Dynamo skips all frames (``MOD_SKIPLIST``): the
    # wrapper of a backward runs while the program is inside of a compiled function. The dump is not in torch/.
    for each in nested_codes(code):
        frame_evaluation.skip_code(each)
