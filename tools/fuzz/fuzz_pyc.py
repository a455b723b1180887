"""Check that malformed .pyc files give a result or a clear error, in bounded time and memory.

    python tools/fuzz/fuzz_pyc.py -n 10000 -j 2 --seed 1

Every mutant is a small module of tests/decompiler/corpus or of the standard library with a defect: a truncated file,
flipped bits, or a change in one field of one code object (instructions, exception table, names, constants). It is read
and decompiled in a worker process with a limit on memory and on CPU time for each mutant. Valid results are source with
a verdict, a ``PycError`` or a ``DecompilationError`` that is not an internal error. Exit status 1 for anything else.
``--only N`` runs one mutant in this process and prints all of it.
"""

from __future__ import annotations

import argparse
import collections
import importlib.util
import marshal
import multiprocessing
import multiprocessing.connection
import os
import random
import re
import resource
import signal
import struct
import sys
import time
import traceback
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Counter, Dict, Iterator, List, Optional, Tuple

from depyf.decompiler.bytecode.code import PortableCode
from depyf.decompiler.bytecode.opcode_table import table_for
from depyf.decompiler.bytecode.pyc import HEADER, PycError, parse_pyc
from depyf.decompiler.errors import DecompilationError
from depyf.decompiler.pipeline import decompile_code

CORPUS = Path(__file__).resolve().parents[2] / "tests" / "decompiler" / "corpus"
SMALL = 3000
"""The limit on bytes of marshalled code of a mutated code object: defects show in small ones too."""

GOOD = ("proved", "unverified", "refused", "no .pyc")


class TooLong(BaseException):
    """Raised by a timer; not an ``Exception``, so that no handler in the decompiler catches it."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of mutant ``number``. ``kind`` is one of ``GOOD``, or "internal", "raised", "too long", "too large",
    "died"."""

    number: int
    kind: str
    detail: str
    seconds: float


def seeds(files: Optional[List[str]] = None) -> List[bytes]:
    """Return the ``.pyc`` files, as bytes, that mutants are made of: each a small function, class or module."""
    found = []
    for path in sorted(map(Path, files)) if files else sorted(CORPUS.glob("*.py")):
        try:
            module = compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
        except SyntaxError:
            continue  # of a newer Python
        for code in [module, *(each for each in module.co_consts if hasattr(each, "co_code"))]:
            data = marshal.dumps(code)
            if len(data) <= SMALL:
                found.append(importlib.util.MAGIC_NUMBER + struct.pack("<III", 0, 1, 2) + data)
    return found


# --- mutants ---------------------------------------------------------------------------------------------------------


def mutant(number: int, seed: int, parents: List[bytes]) -> Any:
    """Return mutant ``number`` of this ``seed``: the bytes of a file, or a code object."""
    chance = random.Random(f"{seed} {number}")
    data = chance.choice(parents)
    kind = chance.random()
    if kind < 0.1:
        return data[: chance.randrange(len(data))]
    if kind < 0.4:
        changed = bytearray(data)
        for _ in range(chance.choice((1, 1, 1, 2, 5, 20))):
            changed[chance.randrange(4 if chance.random() < 0.1 else HEADER, len(data))] ^= 1 << chance.randrange(8)
        return bytes(changed)
    return with_broken_field(parse_pyc(data).code, chance)


def with_broken_field(code: PortableCode, chance: random.Random) -> PortableCode:
    """Return ``code`` with a change in it, or in a nested code object."""
    inner = [index for index, constant in enumerate(code.co_consts) if isinstance(constant, PortableCode)]
    if inner and chance.random() < 0.6:
        index = chance.choice(inner)
        constants = list(code.co_consts)
        constants[index] = with_broken_field(constants[index], chance)
        return replace(code, co_consts=tuple(constants))
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        code = chance.choice(FIELDS)(code, chance)
    return code


def _instructions(code: PortableCode, chance: random.Random) -> PortableCode:
    raw = bytearray(code.co_code)
    if not raw:
        return code  # all of it was removed before
    at = 2 * chance.randrange(len(raw) // 2)
    change = chance.randrange(7)
    if change == 0:
        raw[at + 1] = chance.choice((0, 1, 2, 3, 255, raw[at + 1] ^ (1 << chance.randrange(8))))
    elif change == 1:
        raw[at] = chance.choice(sorted(table_for(code.version).opcodes.values()))
    elif change == 2:
        raw[at] = chance.randrange(256)
    elif change == 3:
        del raw[at : at + 2 * chance.randrange(1, 4)]
    elif change == 4:
        raw[at:at] = raw[2 * chance.randrange(len(raw) // 2) :][: 2 * chance.randrange(1, 8)]
    elif change == 5:
        other = 2 * chance.randrange(len(raw) // 2)
        raw[at : at + 2], raw[other : other + 2] = raw[other : other + 2], raw[at : at + 2]
    else:
        extended = table_for(code.version).opcodes["EXTENDED_ARG"]
        raw[at:at] = bytes((extended, chance.randrange(256))) * chance.randrange(1, 6)
    return replace(code, co_code=bytes(raw))


def _bytes_of(field: str) -> Any:
    def change(code: PortableCode, chance: random.Random) -> PortableCode:
        raw = bytearray(getattr(code, field))
        if not raw or chance.random() < 0.2:
            raw += bytes(chance.randrange(256) for _ in range(chance.randrange(1, 8)))
        elif chance.random() < 0.3:
            del raw[chance.randrange(len(raw)) :]
        else:
            raw[chance.randrange(len(raw))] = chance.randrange(256)
        return replace(code, **{field: bytes(raw)})

    return change


def _tuple_of(field: str) -> Any:
    def change(code: PortableCode, chance: random.Random) -> PortableCode:
        items = list(getattr(code, field))
        at = chance.randrange(len(items) + 1)
        odd = ODD_CONSTANTS if field == "co_consts" else ODD_NAMES
        if items and chance.random() < 0.4:
            del items[at:]
        elif at < len(items) and chance.random() < 0.7:
            items[at] = chance.choice(odd)
        else:
            items.insert(at, chance.choice(odd))
        return replace(code, **{field: tuple(items)})

    return change


def _number_of(field: str) -> Any:
    def change(code: PortableCode, chance: random.Random) -> PortableCode:
        return replace(
            code, **{field: chance.choice((0, 1, 2, 5, 255, getattr(code, field) ^ (1 << chance.randrange(9))))}
        )

    return change


ODD_CONSTANTS: Tuple[Any, ...] = (
    None, (), ("a",), ("a", "a"), (1, "a"), "", "not a name", -1, 1e999, float("nan"), 10**5000, "\ud800", [], {}, ...,
    frozenset({1}), b"x" * 1000, StopIteration, slice(1, 2), ((((),),),),
)  # fmt: skip
ODD_NAMES = ("", "a", "not a name", "if", "__class__", ".0", "a.b", "\ud800", "\u212a", "__debug__", "None", "x" * 5000)
FIELDS = [
    *[_instructions] * 12,
    *[_bytes_of("co_exceptiontable")] * 3,
    _bytes_of("co_linetable"),
    *[_tuple_of("co_consts")] * 2,
    *map(_tuple_of, ("co_names", "co_varnames", "co_cellvars", "co_freevars")),
    *map(_number_of, ("co_flags", "co_argcount", "co_kwonlyargcount", "co_posonlyargcount", "co_stacksize")),
    lambda code, chance: replace(code, co_name=chance.choice(ODD_NAMES + ("<module>", "<lambda>", "<listcomp>"))),
]


# --- running them ----------------------------------------------------------------------------------------------------


def judge(number: int, made: Any, seconds: float) -> Outcome:
    """Read and decompile one mutant within ``seconds`` of CPU time."""
    start = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        kind, detail = _answer(made)
    except TooLong:
        kind, detail = "too long", traceback.format_exc(limit=-6)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return Outcome(number, kind, detail, time.process_time() - start)


def _answer(made: Any) -> Tuple[str, str]:
    try:
        code = parse_pyc(made, "mutant").code if isinstance(made, bytes) else made
        verdict = decompile_code(code).verdict
        return ("proved" if verdict.proved else "unverified"), ""
    except PycError as error:
        return "no .pyc", str(error)
    except DecompilationError as error:
        return ("internal" if "internal error" in str(error) else "refused"), str(error)
    except MemoryError:
        return "too large", traceback.format_exc(limit=-6)
    except Exception as error:
        return "raised", f"{type(error).__name__}: {error}\n{traceback.format_exc(limit=-4)}"


def _raise_too_long(_number: int, _frame: Any) -> None:
    raise TooLong


def _work(pipe: Any, options: argparse.Namespace, parents: List[bytes]) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (options.memory << 20, options.memory << 20))
    signal.signal(signal.SIGPROF, _raise_too_long)
    while True:
        number = pipe.recv()
        pipe.send(judge(number, mutant(number, options.seed, parents), options.seconds))


def run(options: argparse.Namespace, parents: List[bytes]) -> Iterator[Outcome]:
    """Yield the outcomes of all mutants; a worker that dies costs one."""
    context = multiprocessing.get_context("fork")
    waiting = iter(range(options.first, options.first + options.number))
    busy: Dict[Any, Tuple[Any, int, float]] = {}

    def start() -> None:
        number = next(waiting, None)
        if number is None:
            return
        pipe, far_end = context.Pipe()
        process = context.Process(target=_work, args=(far_end, options, parents), daemon=True)
        process.start()
        far_end.close()
        pipe.send(number)
        busy[pipe] = process, number, time.monotonic()

    for _ in range(options.jobs):
        start()
    try:
        while busy:
            for pipe in multiprocessing.connection.wait(list(busy), timeout=1.0):
                process, number, _since = busy[pipe]
                try:
                    outcome = pipe.recv()
                except (EOFError, OSError):
                    process.join()
                    del busy[pipe]
                    yield Outcome(number, "died", f"exit status {process.exitcode}", 0.0)
                    start()
                    continue
                yield outcome
                following = next(waiting, None)
                if following is None:
                    process.kill()
                    del busy[pipe]
                else:
                    pipe.send(following)
                    busy[pipe] = process, following, time.monotonic()
            for pipe, (process, number, since) in list(busy.items()):
                if time.monotonic() - since > 30 * options.seconds:
                    process.kill()
                    del busy[pipe]
                    yield Outcome(number, "died", "hung, and was killed", time.monotonic() - since)
                    start()
    finally:
        for process, _number, _since in busy.values():
            process.kill()


_VARYING = re.compile(r"0x[0-9a-f]+|\d+|'[^']*'|\"[^\"]*\"")


def main(arguments: Optional[List[str]] = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", "--number", type=int, default=10_000)
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="the number of the first mutant")
    parser.add_argument("--only", type=int, help="this mutant alone, here, with a traceback")
    parser.add_argument("--seconds", type=float, default=20.0, help="CPU time a mutant (20)")
    parser.add_argument("--memory", type=int, default=2048, metavar="MIB", help="address space of a worker (2048)")
    parser.add_argument("--errors", type=int, default=0, metavar="N", help="show the N most frequent good errors too")
    parser.add_argument("files", nargs="*", help="source files to make mutants of (default: the corpus)")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore", SyntaxWarning)
    parents = seeds(options.files)
    if options.only is not None:
        return _show(mutant(options.only, options.seed, parents))
    counts: Counter[str] = collections.Counter()
    bad: Dict[str, List[Outcome]] = {}
    errors: Counter[str] = collections.Counter()
    slowest = Outcome(-1, "", "", 0.0)
    began = time.monotonic()
    for done, outcome in enumerate(run(options, parents), 1):
        counts[outcome.kind] += 1
        slowest = max(slowest, outcome, key=lambda each: each.seconds)
        if outcome.kind not in GOOD:
            bad.setdefault(f"{outcome.kind}: {_VARYING.sub('_', outcome.detail)}"[-400:], []).append(outcome)
        elif outcome.detail:
            errors[_VARYING.sub("_", outcome.detail.split(": ", 1)[-1])] += 1
        if done % 500 == 0:
            print(f"{done} mutants, {time.monotonic() - began:.0f} s, {dict(counts)}", file=sys.stderr, flush=True)
    print(f"{sum(counts.values())} mutants of {len(parents)} parents: {dict(counts.most_common())}")
    print(f"slowest: mutant {slowest.number}, {slowest.seconds:.2f} s of CPU time")
    for text, many in errors.most_common(options.errors):
        print(f"{many:6}  {text}")
    for outcomes in sorted(bad.values(), key=len, reverse=True):
        numbers = " ".join(str(each.number) for each in outcomes[:8])
        print(f"{len(outcomes):6}  {outcomes[0].kind} (--only {numbers}): {outcomes[0].detail.strip()}")
    return 1 if bad else 0


def _show(made: Any) -> int:
    from depyf.decompiler.normal.disassembly import disassembly

    code = parse_pyc(made, "mutant").code if isinstance(made, bytes) else made
    try:
        print("\n".join(disassembly(code)))
        print(decompile_code(code))
    except (DecompilationError, ValueError) as error:
        error = error.__cause__ or error
        traceback.print_exception(type(error), error, error.__traceback__)
    return 0


if __name__ == "__main__":
    sys.exit(main())
