"""Calls and imports."""

from __future__ import annotations

import pytest
from small_nodes import lifts, nodes


@pytest.mark.parametrize(
    ("ops", "expected"),
    [
        ("LOAD f; LOAD x; LOAD y; CALL 2", "f(x, y)"),
        ("LOAD f; LOAD x; LOAD y; CALL 2 k", "f(x, k=y)"),
        ("NULL; LOAD f; LOAD x; CALL 1 null=below", "f(x)"),
        ("LOAD f; NULL; LOAD x; CALL 1 null=above", "f(x)"),
        ("LOAD f; LOAD self; LOAD x; CALL 1 null=above", "f(self, x)"),  # the slot of the NULL holds an argument
        ("LOAD f; LOAD args; CALL_EX False ''", "f(*args)"),
        ("LOAD f; LOAD args; LOAD kw; CALL_EX True ''", "f(*args, **kw)"),
        ("LOAD f; LOAD x; LOAD y; BUILD tuple 2; CALL_EX False ''", "f(x, y)"),
        ("LOAD f; CONST (1,2); CALL_EX False ''", "f(1, 2)"),
        ("LOAD f; CONST (); CONST 'k'; LOAD v; BUILD map 1; CALL_EX True ''", "f(k=v)"),
        ("LOAD f; CONST (); CONST 'not'; LOAD v; BUILD map 1; CALL_EX True ''", "f(**{'not': v})"),
        ("LOAD f; CONST (); CONST '__debug__'; LOAD v; BUILD map 1; CALL_EX True ''", "f(**{'__debug__': v})"),
        (
            "LOAD f; CONST (); LOAD a; LOAD b; CONST ('k','if'); BUILD const_key_map 2; CALL_EX True ''",
            "f(**{'k': a, 'if': b})",
        ),
    ],
)
def test_calls(ops: str, expected: str) -> None:
    assert lifts(f"a: {ops}; RETURN") == nodes(f"a: return {expected}")


@pytest.mark.parametrize(
    ("ops", "expected"),
    [
        ("CONST 0; CONST None; IMPORT a.b ''; STORE a", "import a.b"),
        ("CONST 0; CONST None; IMPORT a.b ''; STORE c", "import a.b as c"),
        ("CONST 0; CONST None; IMPORT a.b ''; IMPORT_FROM b; SWAP 2; POP; STORE c", "import a.b as c"),
        ("CONST 0; CONST ('b',); IMPORT a ''; IMPORT_FROM b; STORE b; POP", "from a import b"),
        (
            "CONST 0; CONST ('b','c'); IMPORT a ''; IMPORT_FROM b; STORE b; IMPORT_FROM c; STORE d; POP",
            "from a import b, c as d",
        ),
        ("CONST 1; CONST ('b',); IMPORT '' ''; IMPORT_FROM b; STORE b; POP", "from . import b"),
        ("CONST 2; CONST ('*',); IMPORT a ''; IMPORT_STAR", "from ..a import *"),
    ],
)
def test_imports(ops: str, expected: str) -> None:
    assert lifts(f"a: {ops}; CONST None; RETURN") == nodes(f"a: {expected}; return None")


@pytest.mark.parametrize(
    ("ops", "message"),
    [
        ("LOAD x; IMPORT_FROM b; STORE b; POP; CONST None; RETURN", "other than a module"),
        ("LOAD x; LOAD y; IMPORT a ''; STORE a; CONST None; RETURN", "no constant names or level"),
        ("CONST 0; CONST None; IMPORT a ''; LOAD o; STORE_ATTR p; CONST None; RETURN", "is not a name"),
        ("CONST 1; MAKE_FUNCTION 0; RETURN", "is not a code object"),
        ("LOAD f; LOAD self; LOAD args; CALL_EX False above; RETURN", "no NULL beside"),
    ],
)
def test_what_has_no_syntax_is_refused(ops: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lifts(f"a: {ops}")
