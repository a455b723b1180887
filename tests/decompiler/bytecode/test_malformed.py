"""Malformed code objects give a clear error, and never an internal one."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict

import pytest

from depyf.decompiler.bytecode.code import PortableCode
from depyf.decompiler.bytecode.opcode_table import running_version, table_for
from depyf.decompiler.bytecode.pyc import read_pyc
from depyf.decompiler.errors import DecompilationError
from depyf.decompiler.pipeline import decompile_code

ROOT = Path(__file__).resolve().parents[3]
OPCODES = table_for().opcodes
BASE = read_pyc(ROOT / "tests" / "decompiler" / "bytecode" / "pycs" / "cp{}{}.pyc".format(*running_version())).code


def code(*instructions: Any, **facts: Any) -> PortableCode:
    raw = bytes(byte for name, argument in instructions for byte in (OPCODES[name], argument))
    fields: Dict[str, Any] = {
        "co_code": raw, "co_consts": (None,), "co_names": (), "co_varnames": (), "co_freevars": (), "co_cellvars": (),
        "co_argcount": 0, "co_kwonlyargcount": 0, "co_flags": 3, "co_name": "f", "co_exceptiontable": b"",
        "co_linetable": b"",
    }  # fmt: skip
    return replace(BASE, **{**fields, **facts})


RETURN = [("LOAD_CONST", 0), ("RETURN_VALUE", 0)]


@pytest.mark.parametrize(
    ("malformed", "message"),
    [
        (code(), "0 bytes of code"),
        (code(co_code=b"\x01"), "1 bytes of code"),
        (code(("RETURN_VALUE", 0)), "pops 1 values from a stack of 0"),
        (code(("LOAD_CONST", 0), ("POP_TOP", 0), ("POP_TOP", 0), *RETURN), "pops 1 values from a stack of 0"),
        (code(("BUILD_TUPLE", 255), *RETURN), "pops 255 values from a stack of 0"),
        (code(("LOAD_CONST", 7), ("RETURN_VALUE", 0)), "has the argument 7, which is out of range"),
        (code(("LOAD_FAST", 7), ("RETURN_VALUE", 0)), "has the argument 7, which is out of range"),
        (code(("LOAD_NAME", 7), ("RETURN_VALUE", 0)), "has the argument 7, which is out of range"),
        (code(("LOAD_CONST", 0), ("UNPACK_SEQUENCE", 200), *RETURN), "leaves 200 values"),
        (code(("LOAD_CONST", 0)), "reaches the end"),
        (code(("JUMP_FORWARD", 100), *RETURN), "where no instruction starts"),
        (code(*[("EXTENDED_ARG", 255)] * 5, *RETURN), "EXTENDED_ARG at offset 0: the argument is larger than 32 bits"),
        (code(("EXTENDED_ARG", 1)), "EXTENDED_ARG at offset 0: no instruction follows"),
        (code(*RETURN, co_argcount=3), "3 parameters, and 0 local variables"),
        (code(*RETURN, co_argcount=-1), "-1 positional parameters"),
        (code(*RETURN, co_posonlyargcount=3), "3 of them by position only"),
    ],
)
def test_code_that_cannot_be_is_refused_in_words(malformed: PortableCode, message: str) -> None:
    with pytest.raises(DecompilationError, match=message) as caught:
        decompile_code(malformed)
    assert "internal error" not in str(caught.value)


@pytest.mark.skipif(running_version() < (3, 11), reason="has no exception tables")
@pytest.mark.parametrize(
    ("table", "message"),
    [
        (b"\xff", "exception table is malformed"),
        (b"\x80\x01", "exception table is malformed"),
        (b"\x80" + b"\x7f" * 50, "exception table is malformed"),
        (b"\x80\x20\x00\x00", "there is no code there"),
        (b"\x80\x01\x20\x00", "where no instruction starts"),
        (b"\x80\x02\x00\x00\x80\x02\x00\x00", "overlaps with another"),
        (b"\x80\x01\x00\x3e", "keeps 31 values of a stack of 0"),
    ],
)
def test_exception_tables_that_cannot_be_are_refused(table: bytes, message: str) -> None:
    with pytest.raises(DecompilationError, match=message):
        decompile_code(code(*RETURN, co_exceptiontable=table))


def test_mutants_have_an_answer_or_a_clear_error() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "fuzz" / "fuzz_pyc.py"), "-n", "400", "-j", "2", "--seed", "11"],
        capture_output=True, text=True, timeout=600, check=False, env={"PYTHONPATH": str(ROOT / "src"), "PATH": ""},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    assert "400 mutants of" in done.stdout
