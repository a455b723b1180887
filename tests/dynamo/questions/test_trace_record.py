"""The record made from thread buffers is exact, however they are divided: order, counts and times."""

from __future__ import annotations

import random
from typing import Any, Dict, Iterator, List, Sequence, Tuple

import pytest

pytest.importorskip("torch")

from depyf.answers.trace import CODE, Event, Repeated, Thing
from depyf.dynamo.questions.trace.lanes import Lane
from depyf.dynamo.questions.trace.record import RunRecord

THINGS = [Thing(CODE, chr(65 + number)) for number in range(10)]
Tree = List[Tuple[int, Any, bool]]


def tree(chance: random.Random, depth: int = 0) -> Tree:
    """Runs with what is inside of them (None: a run that is noted as a whole), and whether their end is known."""
    return [
        (
            chance.randint(0, 3),
            tree(chance, depth + 1) if depth < 2 and chance.random() < 0.5 else None,
            chance.random() < 0.9,
        )
        for _ in range(chance.randint(1, 3))
    ]


class Clock:
    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.now = 0
        self.noted: List[int] = []
        self.expected: Dict[int, List[int]] = {}

    def run(self, runs: Tree) -> None:
        for number, inside, known in runs:
            self.now += 1
            start = self.now
            total = self.expected.setdefault(number, [0, 0])
            total[0] += 1
            if inside is None:
                self.now += self.chance.randint(1, 9)
                self.noted += [number, start, self.now]
            else:
                self.noted += [number, start, 0]
                self.run(inside)
                self.now += 1
                self.noted += [~number, self.now if known else 0, 0]
            if inside is None or known:
                total[1] += self.now - start


def in_order(runs: Tree) -> Iterator[Tuple[str, int]]:
    for number, inside, _ in runs:
        yield ("begins", number)
        yield from in_order(inside or [])
        yield ("ends", number)


def in_order_of(events: Sequence[Event]) -> Iterator[Tuple[str, int]]:
    for event in events:
        if isinstance(event, Repeated):
            for _ in range(event.count):
                yield from in_order_of(event.events)
        else:
            number = ord(event.thing.name) - 65
            yield ("begins", number)
            yield from in_order_of(event.inside)
            yield ("ends", number)


def test_random_runs_come_back_exactly() -> None:
    lane = Lane(1)
    for seed in range(600):
        chance = random.Random(seed)
        clock, steps = Clock(chance), []
        for _ in range(chance.randint(1, 4)):
            step = tree(chance)
            for _ in range(chance.choice([1, 1, 2, 3, 20])):
                steps.append(step)
                clock.run(step)
        record, at = RunRecord(THINGS), 0
        while at < len(clock.noted):
            size = 3 * chance.choice([1, 2, 5, 17, 100, 1000])
            record.take(lane, clock.noted[at : at + size])
            at += size
            if chance.random() < 0.2:
                record.answer()
        record.close()
        answer = record.answer()
        assert list(in_order_of(answer.events)) == [each for step in steps for each in in_order(step)]
        totals = {ord(t.thing.name) - 65: [t.count, round((t.seconds or 0) * 1e9)] for t in answer.totals}
        assert totals == clock.expected


def test_what_began_before_the_record_does_not_count() -> None:
    record = RunRecord(THINGS)
    record.take(Lane(1), [~1, 50, 0, 2, 60, 70])
    record.close()
    assert record.answer().counts == {"C": 1}


def test_what_has_not_ended_is_there_with_what_is_inside() -> None:
    record = RunRecord(THINGS)
    record.take(Lane(1), [1, 10, 0, 2, 20, 30, 3, 40, 0])
    (event,) = record.answer().events
    assert not isinstance(event, Repeated)
    assert [(each.thing.name, each.seconds) for each in event.inside if not isinstance(each, Repeated)] == [
        ("C", pytest.approx(1e-8)),
        ("D", None),
    ]
    assert event.seconds is None
