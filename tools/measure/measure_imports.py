"""Show the imports between the rooms of a package: rooms, floors, arrows, arrows that go up, circles.

    python tools/measure/measure_imports.py                    # the counts of every package with rooms, one a line
    python tools/measure/measure_imports.py dynamo --arrows    # every arrow with the number of its imports
    python tools/measure/measure_imports.py dynamo --picture   # the picture of docs/architecture.md
    python tools/measure/measure_imports.py dynamo --source OTHER/src/depyf   # the same of another checkout

A room is a folder of the package, or a module outside of any folder. An arrow is a pair of rooms of which the first
imports the second at least once, anywhere, also for annotations only (``TYPE_CHECKING``). The floor of a room is the
length of the longest path down from it; rooms of one circle are on one floor. An arrow goes up when it leads to a room
that is higher in the order of ``tests/test_layers.py``; for rooms without an order, when it is part of a circle. Only
the standard library is needed.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
from collections import Counter
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "depyf"
PACKAGES = (".", "decompiler", "decompiler/source", "dynamo", "report")
"""What is measured without arguments; ``.`` is the whole house, whose rooms are what stands in ``src/depyf``."""

Arrow = Tuple[str, str]


class Imports(NamedTuple):
    """``modules``: the imports of each module. ``arrows``: those between rooms with their number."""

    modules: Dict[str, Set[str]]
    arrows: Dict[Arrow, int]
    rooms: Tuple[str, ...]


def imports_in(tree: ast.AST) -> Iterator[str]:
    """Yield the absolute names that are imported anywhere in ``tree``, also for annotations only."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def read(package: str, source: Path = PACKAGE) -> Imports:
    """Read the imports between the modules of ``package``, a folder of ``source``."""
    folder = source / package
    inner = tuple(part for part in package.split("/") if part != ".")
    trees = {}
    for path in sorted(folder.rglob("*.py")):
        parts = ("depyf", *inner, *path.relative_to(folder).with_suffix("").parts)
        trees[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = ast.parse(path.read_text(encoding="utf-8"))
    modules = {name: ({*imports_in(tree)} & {*trees}) - {name} for name, tree in trees.items()}
    arrows: Counter[Arrow] = Counter()
    for name, imported in modules.items():
        for other in imported:
            here, there = room_of(name, len(inner)), room_of(other, len(inner))
            if here and there and here != there and not any(each.startswith(f"{other}.") for each in imported):
                arrows[here, there] += 1
    rooms = {room_of(name, len(inner)) for name in modules} - {""}
    return Imports(modules, dict(arrows), tuple(sorted(rooms)))


def room_of(module: str, depth: int) -> str:
    """Return the room of a module in a package ``depth`` levels below ``depyf``; empty for the package itself.
    ``depyf.dynamo.hooks.patching`` is in room ``hooks`` of the package at depth 1, and in ``dynamo`` at depth 0."""
    return [*module.split("."), "", ""][depth + 1]


def circles(arrows: Sequence[Arrow]) -> List[Set[str]]:
    """Return the sets of rooms that reach each other (strongly connected components of more than one node)."""
    rooms = {room for arrow in arrows for room in arrow}
    reached = {room: _reachable(room, arrows) for room in rooms}
    found: List[Set[str]] = []
    for room in sorted(rooms):
        circle = {other for other in reached[room] if room in reached[other]}
        if circle and circle not in found:
            found.append(circle)
    return found


def _reachable(room: str, arrows: Sequence[Arrow]) -> Set[str]:
    found: Set[str] = set()
    todo = [room]
    while todo:
        here = todo.pop()
        new = {there for origin, there in arrows if origin == here} - found
        found |= new
        todo += new
    return found


def floors(rooms: Sequence[str], arrows: Sequence[Arrow]) -> Dict[str, int]:
    """Return the floor of each room, 0 for those that import no other."""
    joined = {room: min(circle) for circle in circles(arrows) for room in circle}
    below: Dict[str, Set[str]] = {joined.get(room, room): set() for room in rooms}
    for here, there in arrows:
        if joined.get(here, here) != joined.get(there, there):
            below[joined.get(here, here)].add(joined.get(there, there))
    known: Dict[str, int] = {}

    def floor(room: str) -> int:
        if room not in known:
            known[room] = max((floor(other) + 1 for other in below[room]), default=0)
        return known[room]

    return {room: floor(joined.get(room, room)) for room in rooms}


def upwards(arrows: Sequence[Arrow], order: Sequence[str]) -> List[Arrow]:
    """Return the arrows to a room that is higher in ``order``; without an order, those that are part of a circle."""
    if not order:
        return [(here, there) for here, there in arrows if any({here, there} <= circle for circle in circles(arrows))]
    rank = {room: index for index, room in enumerate(order)}
    lowest = rank.get("", len(order))
    return [(here, there) for here, there in arrows if rank.get(there, lowest) < rank.get(here, lowest)]


def order_of(package: str) -> Sequence[str]:
    """Return the rooms of ``package`` from top to bottom, as ``tests/test_layers.py`` has them."""
    spec = importlib.util.spec_from_file_location("layers", ROOT / "tests" / "test_layers.py")
    assert spec is not None
    assert spec.loader is not None
    layers = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(layers)
    if package == ".":
        return tuple(name for names in layers.LAYERS for name in names)
    return tuple(layers.ROOMS.get(package.replace("/", "."), ()))


def picture(package: str, source: Path = PACKAGE) -> str:
    """Return a line a room, the highest floor first, with the rooms that it imports."""
    imports = read(package, source)
    on = floors(imports.rooms, list(imports.arrows))
    order = order_of(package)
    rooms = sorted(imports.rooms, key=lambda room: (-on[room], order.index(room) if room in order else len(order)))
    lines = []
    for room in rooms:
        below = sorted((there for here, there in imports.arrows if here == room), key=rooms.index)
        lines.append(f"{on[room]}  {room:<10} {'-> ' if below else ''}{', '.join(below)}".rstrip())
    return "\n".join(lines)


def summary(package: str, source: Path, order: Sequence[str]) -> str:
    """Return the counts of a package in one line."""
    imports = read(package, source)
    arrows = list(imports.arrows)
    within = [(name, other) for name, others in imports.modules.items() for other in others]
    within = [(name, other) for name, other in within if not name.startswith(f"{other}.")]
    return (
        f"{package}: {len(imports.rooms)} rooms on {max(floors(imports.rooms, arrows).values()) + 1} floors, "
        f"{len(arrows)} arrows for {sum(imports.arrows.values())} imports, {len(upwards(arrows, order))} of them up, "
        f"{len(circles(arrows))} circles of rooms, {len(circles(within))} of modules"
    )


def main(arguments: Optional[Sequence[str]] = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("packages", nargs="*", default=PACKAGES, metavar="PACKAGE")
    parser.add_argument("--source", type=Path, default=PACKAGE, help="the folder of the package depyf to read")
    parser.add_argument("--arrows", action="store_true", help="list the arrows with the number of their imports")
    parser.add_argument("--picture", action="store_true", help="print the rooms by floors")
    options = parser.parse_args(arguments)
    for package in options.packages:
        if options.picture:
            print(picture(package, options.source))
            continue
        order = order_of(package) if options.source == PACKAGE else ()
        print(summary(package, options.source, order))
        if options.arrows:
            for (here, there), count in sorted(read(package, options.source).arrows.items()):
                print(f"  {here} -> {there} ({count})")


if __name__ == "__main__":
    main()
