"""A folded sequence unfolds to its input, with the same counts and times; a loop needs the space of one iteration."""

from __future__ import annotations

import random
from typing import Iterator, List
from typing import Sequence as SequenceOf

import pytest

from depyf.dynamo.questions.trace.folding import Item, RunKeys, RunLoop, RunNode, RunSequence, nodes_in, runs_in


def folded(text: str, late: str = "") -> RunSequence:
    sequence = RunSequence({ord(letter) for letter in late})
    for at, letter in enumerate(text):
        sequence.append(RunNode(ord(letter), at, 1))
    sequence.settle()
    return sequence


def shown(items: SequenceOf[Item]) -> str:
    return " ".join(
        f"({shown(each.body)})x{each.count}" if isinstance(each, RunLoop) else chr(each.number) for each in items
    )


def unfolded(items: SequenceOf[Item]) -> Iterator[str]:
    for item in items:
        if isinstance(item, RunLoop):
            for _ in range(item.count):
                yield from unfolded(item.body)
        else:
            yield chr(item.number)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ABCABCABC", "(A B C)x3"),
        ("XABCABCABCABY", "X (A B C)x3 A B Y"),
        ("AABAABAAB", "((A)x2 B)x3"),
        ("ABABCABABC", "((A B)x2 C)x2"),
        ("ABACABAC", "(A B A C)x2"),
        ("ABC", "A B C"),
    ],
)
def test_what_repeats_is_folded(text: str, expected: str) -> None:
    assert shown(folded(text).items) == expected


def test_a_turn_does_not_begin_with_what_is_late() -> None:
    assert shown(folded("XBABABAB", late="B").items) == "X B (A B)x3"
    assert shown(folded("ABBBB", late="B").items) == "A (B)x4"


def test_random_sequences_unfold_to_themselves_whenever_they_are_read() -> None:
    chance = random.Random(0)
    for _ in range(1500):
        part = "".join(chance.choice("ABC") for _ in range(chance.randint(1, 40)))
        text = part * chance.randint(1, 4)
        sequence = RunSequence(set(chance.choice(["", "B", "BC"]).encode()))
        for letter in text:
            sequence.append(RunNode(ord(letter), 0, 2))
            if chance.random() < 0.1:
                sequence.settle()
        sequence.settle()
        assert "".join(unfolded(sequence.items)) == text
        nodes = [node for item in sequence.items for node in nodes_in(item)]
        assert sum(node.total for node in nodes) == 2 * len(text)


def test_a_million_steps_take_the_room_of_one() -> None:
    sequence = RunSequence()
    for _ in range(100000):
        for letter in b"ABCDEFGHIJ":
            sequence.append(RunNode(letter, 0, 1))
    sequence.settle()
    assert shown(sequence.items) == "(A B C D E F G H I J)x100000"
    assert sum(runs_in(item) for item in sequence.items) == 1000000


def test_what_never_repeats_is_dropped_and_counted() -> None:
    chance = random.Random(1)
    gone: List[Item] = []
    sequence = RunSequence()
    for _ in range(30000):
        sequence.append(RunNode(chance.randrange(1000), 0), gone.append)
    sequence.settle()
    assert len(sequence.items) <= 4000
    assert sequence.dropped == sum(map(runs_in, gone))
    assert sequence.dropped + sum(map(runs_in, sequence.items)) == 30000


def test_nodes_are_equal_when_the_same_ran_inside() -> None:
    keys = RunKeys()
    sequence = RunSequence()
    for inner in ("xy", "xy", "x", "xy"):
        node = RunNode(1, 0)
        for letter in inner:
            node.sequence_inside().append(RunNode(ord(letter), 0, 5))
        node.end(100, keys)
        sequence.append(node)
    sequence.settle()
    counts = [item.count for item in sequence.items]
    assert counts == [2, 1, 1]
    loop = sequence.items[0]
    assert isinstance(loop, RunLoop)
    (body,) = loop.body
    assert isinstance(body, RunNode)
    assert body.inside is not None
    assert (body.count, body.total, [node.total for node in nodes_in(body)]) == (2, 200, [200, 10, 10])
