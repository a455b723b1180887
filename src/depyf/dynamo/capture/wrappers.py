"""Make the functions that AOTAutograd generates around compiled graphs run from files in the dump directory."""

from __future__ import annotations

import functools
import os
from types import CodeType, FunctionType
from typing import Callable, List

from depyf import file_names
from depyf.bytecode.code import nested_codes
from depyf.dynamo.capture.records import WrapperFile
from depyf.dynamo.capture.relocate import SourceFile
from depyf.dynamo.capture.session import Receivers
from depyf.dynamo.capture.what_runs import DOES_NOT_RUN, RUNS, RUNS_ELSEWHERE
from depyf.dynamo.hooks import frame_evaluation, generated_code
from depyf.dynamo.hooks.attribution import current_compile_id, current_piece
from depyf.dynamo.hooks.patching import Undo, replace_everywhere
from depyf.dynamo.hooks.safely import safely
from depyf.dynamo.store.names import file_stem


def watch_wrappers(receivers: Receivers) -> List[Undo]:
    """Start to write each generated wrapper to a file and run it from there; return the functions that stop it."""
    # One of the modules may have it from the other: each is replaced once, wherever it is known.
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
    compile_id = current_compile_id()
    for session in receivers():
        name = session.function_name(compile_id)
        kind = file_stem(artifact)
        number = session.directory.take_number(file_names.wrapper_stem(name, kind))
        text = f"# {RUNS if session.stepping else RUNS_ELSEWHERE}\n{session.stable.text(source)}\n"
        path = session.directory.write(file_names.wrapper_file(name, kind, number), text)
        if path is None:
            continue
        session.add(WrapperFile(compile_id, name, artifact, path, current_piece()))
        if not session.stepping:
            continue
        moved = SourceFile(text, path).relocated(function.__code__)
        if moved is None:
            session.directory.write(os.path.basename(path), text.replace(RUNS, DOES_NOT_RUN, 1))
            continue
        _skip_all(moved)
        function.__code__ = moved


def _skip_all(code: CodeType) -> None:
    # torch names these files as if they lay in torch/, which is what keeps Dynamo from tracing them; ours don't.
    for each in nested_codes(code):
        frame_evaluation.skip_code(each)
