"""How kernels are launched, as far as the code that Inductor generated says it."""

from __future__ import annotations

from typing import Dict, Iterable, List, Mapping, Sequence

from depyf.lazy_pattern import re_compile

_HEURISTIC = re_compile(r"@triton_heuristics\.(\w+)\(")
_IN_DECORATOR = re_compile(
    r"(?:\b(size_hints)=(\{[^}]*\}|\[[^\]]*\])|\b(reduction_hint)=ReductionHint\.(\w+)|'(grid_type)': '(\w+)'"
    r"|\b(num_warps|num_stages|num_ctas)=(\d+))"
)
_BLOCK = re_compile(r"^\s+(\w*BLOCK\w*)\s*:\s*tl\.constexpr = (\d+)$")
_RUN = re_compile(r"\.run\((.*?)(?:, grid=(.*?))?, stream=")
_SIZE = re_compile(r"\d+|[us]\d+|\w*numel\w*")

_PARALLEL = re_compile(r"#pragma omp parallel(?: num_threads\((\d+)\))?\s*$")
_FOR = re_compile(r"#pragma omp for\b(.*)$")
_LOOP = re_compile(
    r"for\s*\(\s*(?:int64_t|long|int) (\w+)=(?:static_cast<\w+>\()?(\w+)\)?; "
    r"\1<(?:static_cast<\w+>\()?(.+?)\)?; \1\+=(?:static_cast<\w+>\()?(.+?)\)?\)\s*\{?$"
)
_LONG = re_compile(r"(?<=\d)L\b")


def launch_of(code: Sequence[str], calls: Iterable[str]) -> Mapping[str, str]:
    """Return facts about the launch of a kernel by name, from the lines of its code and of its calls."""
    if any("@triton_heuristics." in line for line in code):
        return _triton(code, calls)
    return _cpp(code)


def _triton(code: Sequence[str], calls: Iterable[str]) -> Dict[str, str]:
    found: Dict[str, str] = {}
    for line in code:
        heuristic, block = _HEURISTIC.search(line), _BLOCK.match(line)
        if heuristic is not None:
            found["heuristic"] = heuristic.group(1)
        elif block is not None:
            found.setdefault(block.group(1), block.group(2))
        if not line.startswith("def "):
            for match in _IN_DECORATOR.finditer(line):
                name, value = (each for each in match.groups() if each is not None)
                found.setdefault(name, value)
    for line in calls:
        run = _RUN.search(line)
        if run is not None:
            sizes = [each.strip() for each in run.group(1).split(",") if _SIZE.fullmatch(each.strip())]
            _add(found, "launched for", ", ".join(sizes))
            _add(found, "grid", run.group(2) or "")
    return found


def _cpp(code: Sequence[str]) -> Dict[str, str]:
    found: Dict[str, str] = {}
    loops: List[str] = []
    for line in code:
        parallel, shared, loop = _PARALLEL.search(line), _FOR.search(line), _LOOP.search(line.strip())
        if parallel is not None:
            found["threads"] = parallel.group(1) or "of the process"
        elif shared is not None:
            _add(found, "parallel loops", shared.group(1).strip() or "one")
        elif loop is not None:
            name, start, end, step = (_LONG.sub("", each) for each in loop.groups())
            loops.append(f"{name} {start} to {end}" + (f" by {step}" if step != "1" else ""))
    if loops:
        found["loops"] = ", ".join(loops)
    if loops and "threads" not in found:
        found["threads"] = "1"
    return found


def _add(found: Dict[str, str], name: str, value: str) -> None:
    if value and value not in found.get(name, "").split("; "):
        found[name] = f"{found[name]}; {value}" if name in found else value
