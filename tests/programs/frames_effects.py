"""Graph breaks beside side effects, ``match`` statements and comprehensions.

The programs are texts, since ``match`` needs Python 3.10. Dynamo replays an effect after the graph, in operations that
no compiler writes.
"""

from __future__ import annotations

import collections
import sys
import textwrap
from typing import Any, Callable, Dict, List

import torch
from breaking_case import Maker, break_graph, example
from case import Case

PROGRAMS: Dict[str, Maker] = {}


class State:
    """What the programs change."""

    def __init__(self) -> None:
        self.history: List[Any] = []
        self.sums: Any = collections.defaultdict(list)
        self.counts = {"a": 1, "b": 2}
        self.recent: Any = collections.deque(maxlen=3)
        self.seen: set[str] = set()
        self.steps = 0
        self.last: Any = None
        self.child = self

    def all(self) -> Dict[str, Any]:
        return {
            "history": list(self.history),
            "sums": dict(self.sums),
            "counts": dict(self.counts),
            "recent": list(self.recent),
            "seen": set(self.seen),
            "steps": self.steps,
            "last": self.last,
        }


class Point:
    """A class for patterns."""

    __match_args__ = ("x", "y")

    def __init__(self, x: Any, y: Any) -> None:
        self.x, self.y = x, y


EFFECTS = {
    "append": "s.history.append(x.shape[0])",
    "append_a_tensor": "s.history.append(x.detach() + 1)",
    "append_to_a_default": "s.sums[tag].append(x.detach().sum())",
    "append_to_two": "s.history.append(x.shape[0]); s.sums[tag].append(x.detach().sum())",
    "extend": "s.history.extend([x.shape[0], tag])",
    "insert": "s.history.insert(0, tag)",
    "replace_a_slice": "s.history[:] = [tag, x.shape[1]]",
    "delete_a_slice": "s.history.extend([1, 2, 3]); del s.history[1:]",
    "pop": "s.history.append(tag); s.history.append(s.history.pop())",
    "set_an_item": "s.counts[tag] = x.shape[0]",
    "augment_an_item": "s.counts[tag] += 1",
    "update": "s.counts.update(c=x.shape[0], d=tag)",
    "delete_an_item": "s.counts['c'] = 1; del s.counts['c']",
    "clear": "s.counts.clear()",
    "default_of_a_dict": "s.counts.setdefault('new', []).append(tag)",
    "deque": "s.recent.append(x.shape[0])",
    "deque_of_tensors": "s.recent.appendleft(x.detach().sum())",
    "set_of_names": "s.seen.add(tag)",
    "an_attribute": "s.last = x.detach() * 2",
    "augment_an_attribute": "s.steps += 1",
    "delete_an_attribute": "s.extra = 1; del s.extra",
    "attribute_of_an_attribute": "s.child.last = tag",
    "a_slice_object": "part = slice(0, x.shape[0] - 1); s.last = part; x = x[part].sum() + x",
    "a_slice_made_twice": "part = slice(tag == 'a', None, 1); x = x[part][:1] + x[slice(2, None)]",
    "a_range": "r = range(x.shape[0]); s.last = list(r)",
    "a_text": "s.last = f'{tag}: {x.shape[0]:>{4}} {tag!r}'",
    "a_nested_container": "s.last = {'a': [x.shape[0], (tag, {1: x.detach()})]}",
    "a_starred_list": "s.last = [*s.counts, tag, *range(2)]",
    "a_call_with_all": "s.counts.update(dict(*[[('k', 1)]], **{'l': 2}))",
}
BLOCKS = {
    "before_a_break": "{effect}\nbreak_graph()\nreturn x * 2",
    "behind_a_break": "print('before')\n{effect}\nreturn x * 2",
    "around_a_break": "{effect}\nx = x.sin()\nbreak_graph()\n{effect}\nreturn x.cos()",
    "in_a_with": (
        "with torch.no_grad():\n    y = x.sin()\n    {effect}\n    break_graph()\n    {effect}\nreturn x + y.sum()"
    ),
}
WITH_ALL_BLOCKS = ["append_to_two", "append_to_a_default", "update", "a_slice_object", "deque", "an_attribute"]
"""Effects in every block; the others stand behind a break and around one."""

MATCHES = {
    "a_class": "match p:\n    case Point(x=a, y=b):\n        return x + a * b\n    case _:\n        return x",
    "a_class_by_position": (
        "match p:\n    case Point(a, 2):\n        return x + a\n    case Point(a, b):\n        return x - a + b"
    ),
    "a_class_of_builtin": (
        "match tag:\n    case int(n):\n        return x + n\n    case str(t):\n        return x + len(t)"
    ),
    "a_mapping": "match s.counts:\n    case {'a': n, **rest}:\n        return x + n + len(rest)\nreturn x",
    "a_sequence": "match [1, tag, 3]:\n    case [a, str(), *rest]:\n        return x + a + len(rest)\nreturn x",
    "a_literal": (
        "match tag:\n    case 'a' | 'c':\n        return x + 1\n    case 'b' if x.sum() > 0:\n"
        "        return x * 2\nreturn x"
    ),
    "nested_classes": (
        "match (p, tag):\n    case (Point(Point(), _), _):\n        return x\n"
        "    case (Point(x=a), 'a' as t):\n        return x + a + len(t)\n    case _:\n"
        "        return x - 1"
    ),
}
MATCH_BLOCKS = {
    "behind_a_break": "x = x.sin()\nbreak_graph()\n{match}",
    "in_a_with": "with torch.no_grad():\n    x = x.sin()\n    break_graph()\n{inside}\nreturn x",
    "around_a_break": "y = x + 1\n{broken}\nreturn y",
}

COMPREHENSIONS = {
    "of_calls": "[broken(x + i) for i in range(3)]",
    "with_a_test": "[broken(x + i) for i in range(4) if i % 2]",
    "of_two_loops": "[broken(x * i + j) for i in range(2) for j in range(i + 1)]",
    "of_a_set": "sorted({broken(x + i).shape[0] + i for i in range(3)})",
    "of_a_dict": "{i: broken(x + i) for i in range(3)}",
    "of_a_generator": "sum(broken(x + i) for i in range(3))",
    "of_tensors": "[broken(row) + 1 for row in x]",
    "nested": "[[broken(x + i + j) for j in range(2)] for i in range(2)]",
    "with_a_closure": "[(lambda y: broken(y) + i)(x) for i in range(2)]",
    "with_effects": "[s.history.append(i) or broken(x + i) for i in range(3)]",
    "with_a_walrus": "[y for i in range(3) if (y := broken(x + i)).sum() > -99]",
    "in_a_call": "torch.stack([broken(x + i) for i in range(2)], dim=0)",
    "with_a_slice": "[broken(x[i:]) for i in range(2)]",
    "with_a_conditional": "[broken(x + i) if i else x for i in range(3)]",
    "of_pairs": "[broken(v) + n for n, v in enumerate([x, x + 1])]",
    "with_text": "[(f'{i}', broken(x + i)) for i in range(2)]",
}

IN_ELEMENTS = {
    "append": "s.history.append(y.shape[0])",
    "append_to_a_default": "s.sums[tag].append(y.detach().sum())",
    "append_to_two": "(s.history.append(y.shape[0]), s.sums[tag].append(y.detach()))",
    "update": "s.counts.update({tag: y.shape[0]})",
    "slice": "s.history.__setitem__(slice(0, 1), [y.shape[0]])",
}
"""Effects in the elements of comprehensions whose own frames Dynamo compiles: it skips the functions around them."""


def broken(y: torch.Tensor) -> torch.Tensor:
    z = y + 1
    break_graph()
    return z * 2


def _function(body: str) -> Callable[..., Any]:
    """Compile ``body`` as a function of a tensor, a tag, the state and a point."""
    text = "def f(x, tag, s, p):\n" + textwrap.indent(body, "    ")
    namespace = {"torch": torch, "break_graph": break_graph, "broken": broken, "Point": Point}
    exec(compile(text, "<a program of frames_effects>", "exec", dont_inherit=True), namespace)
    made: Callable[..., Any] = namespace["f"]  # type: ignore[assignment]
    return made


def _add(name: str, body: str) -> None:
    def make() -> Case:
        state, point = State(), Point(1, 2)
        x = example()
        return Case(_function(body), [(x, "a", state, point), (x + 1, "b", state, point)], state.all)

    PROGRAMS[name] = make


def _add_all() -> None:
    for name, effect in EFFECTS.items():
        chosen = BLOCKS if name in WITH_ALL_BLOCKS else ["behind_a_break", "around_a_break"]
        for block in chosen:
            _add(f"effect_{name}_{block}", BLOCKS[block].replace("{effect}", effect))
    for name, match in MATCHES.items() if sys.version_info >= (3, 10) else ():
        inside = textwrap.indent(match.replace("return ", "x = "), "    ")
        with_break = match.replace("return ", "break_graph(); y = y + ")
        for block, text in MATCH_BLOCKS.items():
            body = text.replace("{match}", match).replace("{inside}", inside).replace("{broken}", with_break)
            _add(f"match_{name}_{block}", body)
    for name, comprehension in COMPREHENSIONS.items():
        _add(f"comprehension_{name}", f"result = {comprehension}\nreturn result")
        _add(f"comprehension_{name}_behind_a_break", f"x = x.sin()\nbreak_graph()\nr = {comprehension}\nreturn r, x")
    for name, effect in IN_ELEMENTS.items():
        skipped = f"for _ in range(1):\n    break_graph()\n    r = [({effect}, y.sin(), x)[1] for y in x]\nreturn r"
        _add(f"element_{name}", skipped)
        _add(
            f"element_{name}_of_a_set",
            skipped.replace("r = [(", "r = {(").replace("[1] for y in x]", "[1].shape for y in x}"),
        )
        _add(f"element_{name}_of_a_dict", skipped.replace("r = [(", "r = {tag: (").replace(" in x]", " in x}"))


_add_all()
