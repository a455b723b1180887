"""Run programs with and without ``prepare_debug`` and print, as JSON, where they differ, and which frames depyf left to
Dynamo's own bytecode.

Arguments: a dump directory, a JSON list of [program, backend, training, dynamic].
"""

from __future__ import annotations

import json
import sys
from typing import Any, List, Tuple

import torch
from breaking import PROGRAMS
from case import run

import depyf
from depyf.dynamo.capture.records import TransformedCode


def compiled_run(name: str, backend: str, training: bool, dynamic: bool) -> Any:
    torch._dynamo.reset()
    case = PROGRAMS[name]()
    return run(case, torch.compile(case.function, backend=backend, dynamic=dynamic), training)


def main(directory: str, wanted: List[Tuple[str, str, bool, bool]]) -> None:
    report = []
    for name, backend, training, dynamic in wanted:
        label = f"{name}-{backend}-{'training' if training else 'inference'}-{'dynamic' if dynamic else 'static'}"
        plain = compiled_run(name, backend, training, dynamic)
        with depyf.prepare_debug(f"{directory}/{label}") as prepared:
            dumped = compiled_run(name, backend, training, dynamic)
        differing = [part for part in plain if plain[part] != dumped[part]]
        shown = {part: (str(plain[part])[:2000], str(dumped[part])[:2000]) for part in differing}
        assert prepared.session is not None
        frames = prepared.session.records(TransformedCode)
        unproved = [(frame.function, frame.verdict, frame.reason) for frame in frames if not frame.replaced]
        report.append({"label": label, "different": shown, "unproved": unproved})
    print("REPORT" + json.dumps(report))


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
