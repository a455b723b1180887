"""Functions of every kind are decompiled and proved, and behave as before when they are run."""

from __future__ import annotations

import ast
from functools import lru_cache
from types import CodeType
from typing import List

import pytest
from corpus import Specimen, code_of_function, compile_corpus, corpus_files, namespace_of, observe, specimens

from depyf.decompiler import decompile_code
from depyf.decompiler.bytecode.code import COMPREHENSIONS
from depyf.decompiler.result import Decompilation, Verdict

ALL = list(specimens())
EACH = pytest.mark.parametrize("specimen", ALL, ids=[specimen.label for specimen in ALL])

compiled = lru_cache(maxsize=None)(compile_corpus)


@lru_cache(maxsize=None)
def decompiled(specimen: Specimen) -> Decompilation:
    return decompile_code(code_of_function(compiled(specimen.file), specimen.name))


def observations(specimen: Specimen, code: CodeType) -> List[object]:
    """What all calls of the specimen show when its function runs ``code``."""
    namespace = namespace_of(compiled(specimen.file))
    namespace[specimen.name].__code__ = code
    return [observe(call, namespace) for call in specimen.calls]


def expected(specimen: Specimen) -> List[object]:
    return observations(specimen, code_of_function(compiled(specimen.file), specimen.name))


@EACH
def test_the_answer_is_proved_and_its_text_is_its_tree(specimen: Specimen) -> None:
    answer = decompiled(specimen)
    assert answer.verdict.proved, answer.reason
    assert ast.dump(ast.parse(answer.source)) == ast.dump(answer.tree)


@EACH
def test_the_source_run_as_text_behaves_as_the_original(specimen: Specimen) -> None:
    answer = decompiled(specimen)
    code = code_of_function(compile(answer.source, "<decompiled>", "exec", 0, True), specimen.name)
    assert observations(specimen, code) == expected(specimen)


@EACH
def test_the_compiled_code_stands_in_for_the_original(specimen: Specimen) -> None:
    original = code_of_function(compiled(specimen.file), specimen.name)
    code = decompiled(specimen).compile_like(original, "<stand-in>")
    assert code.co_filename == "<stand-in>"
    assert (code.co_name, code.co_flags, code.co_freevars) == (
        original.co_name,
        original.co_flags,
        original.co_freevars,
    )
    assert observations(specimen, code) == expected(specimen)


@pytest.mark.parametrize("file", corpus_files())
def test_a_whole_module_behaves_as_the_original(file: str) -> None:
    answer = decompile_code(compiled(file))
    assert answer.verdict.proved, answer.reason
    original = namespace_of(compiled(file))
    again = namespace_of(compile(answer.source, "<decompiled>", "exec", dont_inherit=True))
    calls = [call for specimen in ALL if specimen.file == file for call in specimen.calls]
    assert [(call, observe(call, again)) for call in calls] == [(call, observe(call, original)) for call in calls]


@pytest.mark.parametrize("file", corpus_files())
def test_comprehensions_come_back_alone(file: str) -> None:
    """Each code object inside of a function; before 3.12 every comprehension has one of its own."""
    todo = [compiled(file)]
    while todo:
        inner = [const for const in todo.pop().co_consts if isinstance(const, CodeType)]
        todo.extend(inner)
        for code in inner:
            if code.co_name in COMPREHENSIONS:
                answer = decompile_code(code)
                assert answer.verdict.proved, answer.reason
                assert answer.compile_like().co_code == code.co_code or answer.verdict is not Verdict.EXACT


@EACH
def test_every_specimen_is_run_and_answers_the_same_twice(specimen: Specimen) -> None:
    assert specimen.calls, "give it a '# run:' line"
    assert expected(specimen) == expected(specimen)


def test_the_corpus_is_large() -> None:
    assert len(ALL) >= 250
