"""One training step with and without ``prepare_debug``: the same bits, every frame proved, every file Python.

Arguments: ``branch`` (the README's example) or ``bert`` (a small one of transformers'), backend, dump directory.
Prints, as JSON, what was found.
"""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

import torch
from case import detached

import depyf
from depyf.decompiler.result import Verdict
from depyf.dynamo.capture.records import TransformedCode

Step = Callable[[], Any]


def branch(backend: str) -> Step:
    def mean_or_flip(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        x = a / (torch.abs(a) + 1)
        if b.sum() < 0:
            b = b * -1
        return x * b

    def step() -> Any:
        torch.manual_seed(0)
        compiled = torch.compile(mean_or_flip, backend=backend)
        found: List[Any] = []
        for _ in range(20):
            a, b = torch.randn(10, requires_grad=True), torch.randn(10, requires_grad=True)
            result = compiled(a, b)
            result.sum().backward()
            found.append((result, a.grad, b.grad))
        return found

    return step


def bert(backend: str) -> Step:
    from transformers import BertConfig, BertForSequenceClassification

    def step() -> Any:
        torch.manual_seed(0)
        config = BertConfig(
            vocab_size=128,
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=64,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        )
        model = BertForSequenceClassification(config).train()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        compiled = torch.compile(model, backend=backend)
        tokens, labels = torch.randint(0, 128, (4, 16)), torch.tensor([0, 1, 0, 1])
        losses = []
        for _ in range(2):
            optimizer.zero_grad()
            loss = compiled(input_ids=tokens, attention_mask=torch.ones_like(tokens), labels=labels).loss
            loss.backward()
            optimizer.step()
            losses.append(loss)
        return losses, [parameter.grad for parameter in model.parameters()]

    return step


PROGRAMS: Dict[str, Callable[[str], Step]] = {"branch": branch, "bert": bert}


def unproved(records: List[TransformedCode]) -> List[Tuple[str, str, str]]:
    return [(r.function, r.verdict, r.reason) for r in records if not Verdict(r.verdict).code_proved]


def unparsable(directory: Path) -> List[str]:
    wrong = []
    for path in sorted(directory.rglob("*.py")):
        try:
            ast.parse(path.read_text(encoding="utf-8"))
        except SyntaxError as error:
            wrong.append(f"{path.name}: {error}")
    return wrong


def main(program: str, backend: str, directory: str) -> None:
    step = PROGRAMS[program](backend)
    plain = detached(step())
    torch._dynamo.reset()
    with depyf.prepare_debug(directory) as prepared:
        dumped = detached(step())
    assert prepared.session is not None
    frames = prepared.session.records(TransformedCode)
    report = {
        "same": plain == dumped,
        "frames": len(frames),
        "unproved": unproved(frames),
        "unparsable": unparsable(Path(directory)),
        "files": sorted(path.name for path in Path(directory).iterdir()),
    }
    print("REPORT" + json.dumps(report))


if __name__ == "__main__":
    main(*sys.argv[1:])
