"""Certificates of proofs, and attempts to get a wrong one past the checker."""

from __future__ import annotations

import copy
import json
import random
import warnings
from types import CodeType
from typing import Any, Iterator, List, Optional, Tuple

from depyf.decompiler import decompile
from depyf.decompiler.certificates.check import check_certificate
from depyf.decompiler.certificates.machine import CertificateError
from depyf.decompiler.verify.certificate import write_certificate


def recompiled(code: CodeType) -> Optional[CodeType]:
    """Return ``code`` decompiled and compiled again, if the text alone defines it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            module = compile(decompile(code), "<again>", "exec", dont_inherit=True)
        except (ValueError, SyntaxError):
            return None
    found = [each for each in module.co_consts if isinstance(each, CodeType) and each.co_name == code.co_name]
    return found[0] if len(found) == 1 else None


def refusal(certificate: str, original: CodeType, candidate: CodeType) -> str:
    """Return why the checker refuses the certificate; nothing if it accepts it."""
    try:
        check_certificate(certificate, original, candidate)
    except CertificateError as error:
        return str(error)
    return ""


def false_certificates(original: CodeType, mutant: CodeType, rng: random.Random, edits: int) -> Iterator[str]:
    """Yield certificates for a mutant that has none: the original's own, what the attempt of a proof has found, and
    edits of both."""
    for each in (
        write_certificate(original, original, always_prove=True),
        write_certificate(original, mutant, always_prove=True, refused=True),
        "[]",
    ):
        yield each
        for _ in range(edits):
            yield edited(each, rng)


def edited(certificate: str, rng: random.Random) -> str:
    """Return the certificate with one to three random edits that keep its form."""
    data = json.loads(certificate)
    for _ in range(rng.randint(1, 3)):
        states = [(proof, at) for proof in data for at in range(len(proof["states"]))]
        if not states:
            break
        proof, at = rng.choice(states)
        state = proof["states"][at]
        rng.choice([_drop, _copy, _move, _unite, _number, _exchange, _forget])(proof, state, rng)
    return json.dumps(data)


def _drop(proof: Any, state: Any, rng: random.Random) -> None:
    proof["states"].remove(state)


def _copy(proof: Any, state: Any, rng: random.Random) -> None:
    other = copy.deepcopy(state)
    _move(proof, other, rng)
    proof["states"].append(other)


def _move(proof: Any, state: Any, rng: random.Random) -> None:
    """Pair a position with another one."""
    side = state[rng.choice(["left", "right"])]
    side[0] = max(side[0] + rng.choice([-3, -2, -1, 1, 2, 3]), 0)


def _unite(proof: Any, state: Any, rng: random.Random) -> None:
    """Say that all numbers are one object."""
    for slot in _slots(state):
        if slot[0] in ("sym", "maybe"):
            slot[1] = 0


def _number(proof: Any, state: Any, rng: random.Random) -> None:
    """Say less of a slot, or more."""
    slots = _slots(state)
    if slots:
        slot = rng.choice(slots)
        slot[:] = rng.choice([["sym", rng.randrange(6)], ["maybe", rng.randrange(6)], ["const", rng.randrange(4)]])


def _exchange(proof: Any, state: Any, rng: random.Random) -> None:
    """Exchange a side with that of another state."""
    other, side = rng.choice(proof["states"]), rng.choice(["left", "right"])
    state[side], other[side] = other[side], state[side]


def _forget(proof: Any, state: Any, rng: random.Random) -> None:
    """Forget a variable of both sides."""
    names = sorted({*state["left"][2], *state["right"][2]})
    if names:
        name = rng.choice(names)
        for side in ("left", "right"):
            state[side][2].pop(name, None)


def _slots(state: Any) -> List[Any]:
    return [slot for side in ("left", "right") for slot in (*state[side][1], *state[side][2].values())]


def pairs_of(codes: Iterator[CodeType]) -> Iterator[Tuple[CodeType, CodeType]]:
    """Yield the code objects that come back from the decompiler as one that can be compared, with it."""
    for code in codes:
        again = recompiled(code)
        if again is not None:
            yield code, again
