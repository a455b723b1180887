"""Write certificates of proofs, check them without the verifier, and try to get wrong ones past the checker.

    python tools/check/check_certificates.py programs -n 500     # random programs: original and decompiled form
    python tools/check/check_certificates.py modules json shlex  # the functions of modules, likewise
    python tools/check/check_certificates.py mutants json shlex  # mutants of functions, with false certificates

``programs`` and ``modules`` count certificates, their states and characters, and why the checker refuses some: it knows
less than the verifier. ``mutants`` gives the checker, for each function and a mutant of it, the certificate of the
function, what the verifier has found when it refused, and random edits of both; none may be accepted. Exit status 0
when none is.
"""

from __future__ import annotations

import argparse
import ast
import random
import sys
import warnings
from collections import Counter
from pathlib import Path
from types import CodeType
from typing import Dict, Iterator, List, Optional, Tuple

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from certified import false_certificates, pairs_of, refusal
from interpreted import KINDS
from mutators import MUTATORS, mutated, sites
from random_checks import code_of_program
from same_bytecode import same_bytecode

from depyf.decompiler.bytecode.code import nested_codes
from depyf.decompiler.verify import Finding, compare
from depyf.decompiler.verify.certificate import write_certificate
from depyf.sweep.targets import find_files, read_module, targets_of


def codes_of_programs(count: int) -> Iterator[CodeType]:
    for make, _ in KINDS.values():
        for number in range(count):
            try:
                yield code_of_program(make(random.Random(number)))
            except (SyntaxError, ValueError):
                continue


def codes_of_modules(names: List[str]) -> Iterator[CodeType]:
    for path in map(Path, find_files(names)):
        for target in targets_of(read_module(str(path)), str(path)):
            if isinstance(target.code, CodeType) and not target.code.co_name.startswith("<"):
                yield target.code


def check_pairs(codes: Iterator[CodeType]) -> int:
    tally: Dict[str, int] = Counter()
    reasons: Dict[str, int] = Counter()
    for original, candidate in pairs_of(codes):
        found = compare(original, candidate)
        if not found.proved:
            tally["not proved alone"] += 1
            continue
        kind = found.finding.value if found.finding is not Finding.EXACT else "exact, proved again"
        certificate = write_certificate(original, candidate, always_prove=found.finding is Finding.EXACT)
        why = refusal(certificate, original, candidate)
        tally[f"{kind}: {'refused' if why else 'checked'}"] += 1
        if why:
            reasons[why.partition(": ")[2][:90] or why[:90]] += 1
        else:
            tally["states"] += certificate.count('"left"')
            tally["characters"] += len(certificate)
    print(dict(tally))
    for why, number in Counter(reasons).most_common(12):
        print(f"{number:6} {why}")
    return 0


def mutants_of(names: List[str], count: int) -> Iterator[Tuple[str, CodeType, CodeType]]:
    for path in map(Path, find_files(names)):
        tree = ast.parse(Path(path).read_text(encoding="utf-8"))
        functions = [each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef)]
        rng = random.Random(path.name)
        for _ in range(count if functions else 0):
            function, name = rng.choice(functions), rng.choice(list(MUTATORS))
            function.decorator_list = []
            alone = ast.fix_missing_locations(ast.Module([function], []))
            places = len(sites(alone, MUTATORS[name]))
            if places:
                pair = [_function_in(each) for each in (alone, mutated(alone, MUTATORS[name], rng.randrange(places)))]
                if pair[0] is not None and pair[1] is not None and not same_bytecode(pair[0], pair[1]):
                    yield f"{name} in {path.name}:{function.name}", pair[0], pair[1]


def _function_in(tree: ast.Module) -> Optional[CodeType]:
    try:
        module = compile(tree, "<mutant>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return None
    return next((each for each in nested_codes(module) if isinstance(each, CodeType)), None)


def check_mutants(names: List[str], count: int, edits: int) -> int:
    tally: Dict[str, int] = Counter()
    rng = random.Random(1)
    for label, original, mutant in mutants_of(names, count):
        tally["mutants"] += 1
        for certificate in false_certificates(original, mutant, rng, edits):
            tally["false certificates"] += 1
            if not refusal(certificate, original, mutant):
                tally["ACCEPTED"] += 1
                print(f"ACCEPTED: {label}: {certificate[:300]}")
    print(dict(tally))
    return 1 if tally["ACCEPTED"] else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["programs", "modules", "mutants"])
    parser.add_argument("names", nargs="*", help="modules")
    parser.add_argument("-n", "--count", type=int, default=100, help="programs of each kind, mutants tried a module")
    parser.add_argument("--edits", type=int, default=5, help="edits of each false certificate (5)")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.what == "mutants":
        return check_mutants(options.names, options.count, options.edits)
    programs = options.what == "programs"
    return check_pairs(codes_of_programs(options.count) if programs else codes_of_modules(options.names))


if __name__ == "__main__":
    sys.exit(main())
