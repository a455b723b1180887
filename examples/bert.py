"""One training step of a small BERT (random weights, nothing is downloaded), compiled: forward and backward.

    pip install transformers
    python examples/bert.py [DUMP_FOLDER]

With a folder, it runs under ``prepare_debug``; without one it is an ordinary program.
"""

from __future__ import annotations

import contextlib
import sys

import torch
from transformers import BertConfig, BertForSequenceClassification

import depyf


def training_step(model: torch.nn.Module, tokens: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return model(input_ids=tokens, labels=labels).loss


def main() -> None:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=128,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=32,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    model = BertForSequenceClassification(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    compiled = torch.compile(training_step)
    tokens, labels = torch.randint(0, 128, (4, 16)), torch.tensor([0, 1, 1, 0])
    for step in range(3):
        loss = compiled(model, tokens, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step}: loss {loss.item():.4f}")


if __name__ == "__main__":
    with depyf.prepare_debug(sys.argv[1]) if len(sys.argv) > 1 else contextlib.nullcontext():
        main()
