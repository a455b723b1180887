"""Text and code objects of the functions and classes of real modules survive a round trip."""

from __future__ import annotations

import ast

import pytest
from functions import STANDARD_LIBRARY, difference, functions_of
from unfolding import unfold

from depyf.decompiler.source.compiling.to_code import compile_like
from depyf.decompiler.source.passes import simplify
from depyf.decompiler.source.passes.temporaries import fold_temporaries
from depyf.decompiler.source.printing import wrapping
from depyf.decompiler.source.printing.statements import unparse
from depyf.decompiler.source.printing.text import to_source
from depyf.decompiler.verify import compare

pytestmark = pytest.mark.shared

SOME = """
    argparse ast asyncio/tasks bdb codecs collections/__init__ contextlib copy dataclasses enum fractions functools
    heapq html/parser inspect json/decoder tokenize pickle random shutil statistics tempfile textwrap threading
    traceback typing unittest/mock uuid
""".split()  # noqa: SIM905  (sixty names in quotes are no clearer)

MORE = """
    abc asyncio/base_events asyncio/streams bisect calendar cgi cmd concurrent/futures/thread configparser csv
    ctypes/__init__ datetime _pydatetime dis doctest email/message ftplib gettext glob http/client imaplib
    logging/__init__ mailbox
    multiprocessing/pool optparse pdb pickletools platform plistlib smtplib socket ssl subprocess tarfile
    urllib/request xml/dom/minidom zipfile test/test_grammar test/test_coroutines test/test_generators
    test/test_exceptions test/test_with test/test_except_star test/test_named_expressions test/test_unpack_ex
    test/test_asyncgen test/test_fstring test/test_funcattrs test/test_listcomps test/test_class test/test_complex
    test/test_float test/test_long test/test_patma test/test_scope test/test_super test/test_syntax test/test_compile
    test/test_dis
""".split()  # noqa: SIM905  (sixty names in quotes are no clearer)


@pytest.fixture(autouse=True)
def _long_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines are not broken: the reference is compiled from unbroken ones, and jumps are not threaded across lines."""
    monkeypatch.setattr(wrapping, "WIDTH", 1_000_000)


def has_functions(module: str) -> bool:
    """Whether this Python has ``module``, and not only as other names for what another one defines (``datetime``)."""
    path = STANDARD_LIBRARY / f"{module}.py"
    return path.is_file() and b"def " in path.read_bytes()


THERE = [module for module in MORE if has_functions(module)]  # versions add and remove some
EVERY_MODULE = [*SOME, *(pytest.param(module, marks=pytest.mark.slow) for module in THERE)]


@pytest.mark.parametrize("module", EVERY_MODULE)
def test_every_definition_compiles_back_to_the_code_object_that_it_had(module: str) -> None:
    count = 0
    for tree, code in functions_of(STANDARD_LIBRARY / f"{module}.py"):
        again = compile_like(to_source(tree), code, "<again>")
        assert difference(code, again) is None, f"{code.co_name} at line {code.co_firstlineno}"
        count += 1
    assert count


@pytest.mark.parametrize("module", EVERY_MODULE)
def test_readability_passes_keep_the_meaning_of_every_function(module: str) -> None:
    for tree, code in functions_of(STANDARD_LIBRARY / f"{module}.py"):
        if not isinstance(tree.body[0], ast.ClassDef):
            again = compile_like(to_source(simplify(tree)), code, "<again>")
            comparison = compare(code, again)
            assert comparison.proved, f"{code.co_name} at line {code.co_firstlineno}: {comparison.reason}"


@pytest.mark.parametrize("module", ["argparse", "inspect", "contextlib", "tokenize", "enum", "typing"])
def test_folding_temporaries_undoes_taking_expressions_apart(module: str) -> None:
    taken_apart = 0
    for tree, code in functions_of(STANDARD_LIBRARY / f"{module}.py"):
        function = tree.body[0]
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            unfolded = unfold(function)
            taken_apart += "__temp_" in _text(unfolded)
            assert _text(fold_temporaries(unfolded)) == _text(function), code.co_name
    assert taken_apart > 10


def _text(tree: ast.AST) -> str:
    return unparse(ast.fix_missing_locations(tree))
