"""Certificates of proofs are checked without the verifier, and a wrong one is not accepted.

``tools/check/check_certificates.py`` does the same with more programs.
"""

from __future__ import annotations

import ast
import json
import random
import sys
from pathlib import Path
from types import CodeType
from typing import Any, Callable, List

import pytest
from certified import false_certificates, refusal
from corpus import compile_corpus
from mutators import MUTATORS, mutated, sites
from random_checks import code_of_program
from same_bytecode import same_bytecode

import depyf.decompiler.certificates
from depyf.decompiler.verify import Finding, compare
from depyf.decompiler.verify.certificate import write_certificate


def code(text: str) -> CodeType:
    return code_of_program(text)


LOOP = "def program(a, b):\n for x in a:\n  if x is None: b = x\n  else: b(x)\n return b\n"
TURNED = "def program(a, b):\n for x in a:\n  if x is not None:\n   b(x)\n   continue\n  b = x\n return b\n"


def test_an_equivalent_proof_has_a_certificate() -> None:
    original, candidate = code(LOOP), code(TURNED)
    assert compare(original, candidate).finding is Finding.EQUIVALENT
    certificate = write_certificate(original, candidate)
    assert json.loads(certificate)[0]["states"]
    assert not refusal(certificate, original, candidate)


@pytest.mark.parametrize("file", ["conditions", "exceptions", "loops", "closures", "contexts"])
def test_the_proofs_of_the_corpus_have_certificates(file: str) -> None:
    """Proved again, although the operations are the same: the states are those of every loop and handler."""
    checked = 0
    for each in compile_corpus(file).co_consts:
        if isinstance(each, CodeType):
            refused = refusal(write_certificate(each, each, always_prove=True), each, each)
            if refused.endswith("too many steps"):  # tests whose outcome is known in a loop, before 3.10: not followed
                assert each.co_name.startswith("while_is_")
                assert sys.version_info < (3, 10)
                continue
            assert not refused, each.co_name
            checked += 1
    assert checked > 5


# --- false certificates


def no_states(proof: Any) -> None:
    proof["states"].clear()


def another_position(proof: Any) -> None:
    for state in proof["states"]:
        state["right"][0] += 1


def one_object_for_all(proof: Any) -> None:
    for state in proof["states"]:
        for side in ("left", "right"):
            for slot in (*state[side][1], *state[side][2].values()):
                slot[:] = ["sym", 0]


def nothing_corresponds(proof: Any) -> None:
    for state in proof["states"]:
        slots = [slot for side in ("left", "right") for slot in (*state[side][1], *state[side][2].values())]
        for number, slot in enumerate(slots):
            slot[:] = ["sym", number]


def variables_forgotten(proof: Any) -> None:
    for state in proof["states"]:
        state["left"][2].clear()
        state["right"][2].clear()


def a_constant(proof: Any) -> None:
    for state in proof["states"]:
        for side in ("left", "right"):
            state[side][2]["b"] = ["truth", True]


@pytest.mark.parametrize(
    "falsify",
    [no_states, another_position, one_object_for_all, nothing_corresponds, variables_forgotten, a_constant],
)
def test_a_false_certificate_of_a_true_statement_is_refused(falsify: Callable[[Any], None]) -> None:
    original, candidate = code(LOOP), code(TURNED)
    data = json.loads(write_certificate(original, candidate))
    falsify(data[0])
    assert refusal(json.dumps(data), original, candidate)


DIFFERENT = {
    "another operand": (LOOP, TURNED.replace("b(x)", "b(b)")),
    "the other branch": (LOOP, TURNED.replace("is not", "is")),
    "never ends": ("def program(a):\n if a is None:\n  while True: pass\n return a", "def program(a):\n return a"),
    "a variable": ("def program(a):\n x = 1\n a()\n return x", "def program(a):\n x = 2\n a()\n x = 1\n return x"),
    "a lifetime": (
        "def program(a):\n x = a()\n x = 1\n a()\n return x",
        "def program(a):\n y = x = a()\n x = 1\n a()\n return x",
    ),
    "what is handled": (
        "def program(a):\n try: a()\n except Exception: a(1)\n return 1",
        "def program(a):\n try: a()\n except Exception: pass\n a(1)\n return 1",
    ),
    "where it is caught": (
        "def program(a):\n try:\n  a()\n  a()\n except Exception: return 1",
        "def program(a):\n a()\n try: a()\n except Exception: return 1",
    ),
    "a nested function": ("def program(a):\n return lambda: a + 1", "def program(a):\n return lambda: a + 2"),
    "a nested function in a pair": (
        "def program(a):\n return (lambda: a + 1), 1",
        "def program(a):\n return (lambda: a + 2), 1",
    ),
    "a default": (
        "def program(a, b):\n def f(x=a): pass\n return f",
        "def program(a, b):\n def f(x=b): pass\n return f",
    ),
    "a sign": ("def program(a):\n return a(0.0)", "def program(a):\n return a(-0.0)"),
    "a type": ("def program(a):\n return a((1, 2))", "def program(a):\n return a((True, 2))"),
    "unbound": (
        "def program(a):\n if a(): x = 1\n a()\n return x",
        "def program(a):\n x = 1\n if a(): pass\n a()\n return x",
    ),
    "a line that the body assigns": (
        "def program():\n class C:\n  __qualname__ = 'program.<locals>.C'\n  __firstlineno__ = 2",
        "def program():\n\n class C:\n  __qualname__ = 'program.<locals>.C'\n  __firstlineno__ = 3",
    ),
    "a docstring": ("def program(a):\n 'x'", "def program(a):\n 'y'"),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_no_certificate_says_the_same_of_what_differs(name: str) -> None:
    original, candidate = map(code, DIFFERENT[name])
    own = refusal(write_certificate(original, original, always_prove=True), original, original)
    assert own == ("one side may run silently for ever" if name == "never ends" else "")
    for certificate in false_certificates(original, candidate, random.Random(0), edits=5):
        assert refusal(certificate, original, candidate), certificate


def test_mutants_are_refused_by_the_checker_alone() -> None:
    """The certificate of the function, what a failed proof has found, and edits of both."""
    tree = ast.parse(Path(str(pytest.importorskip("textwrap").__file__)).read_text(encoding="utf-8"))
    functions = [each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef)]
    rng, tried = random.Random(0), 0
    for _ in range(40):
        function, name = rng.choice(functions), rng.choice(list(MUTATORS))
        alone = ast.fix_missing_locations(ast.Module([function], []))
        places = len(sites(alone, MUTATORS[name]))
        if not places:
            continue
        pair: List[CodeType] = []
        for each in (alone, mutated(alone, MUTATORS[name], rng.randrange(places))):
            module = compile(each, "<mutant>", "exec", dont_inherit=True)
            pair += [inner for inner in module.co_consts if isinstance(inner, CodeType)][:1]
        if len(pair) == 2 and not same_bytecode(*pair):
            for certificate in false_certificates(*pair, rng, edits=1):
                assert refusal(certificate, *pair), f"{name} in {function.name}: {certificate}"
            tried += 1
    assert tried > 5


def test_what_is_trusted_is_small_and_shares_nothing_with_the_verifier() -> None:
    files = sorted(Path(depyf.decompiler.certificates.__path__[0]).glob("*.py"))
    texts = [file.read_text(encoding="utf-8") for file in files]
    assert len(files) > 2
    assert sum(text.count("\n") for text in texts) <= 800
    assert not any("decompiler.verify" in text for text in texts)
