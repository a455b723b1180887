"""The memory for a report of a log: its texts stay in the log, and go to the page one by one."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import re
import tracemalloc
from pathlib import Path

import pytest

from depyf.cli import main

LOG = Path(__file__).resolve().parent.parent / "logs" / "torch_2_13.log.gz"


def repeated(path: Path, times: int, lines: int) -> int:
    """Write the log, repeated with other frames, each with one more text of so many lines; return its size in bytes."""
    text = gzip.decompress(LOG.read_bytes()).decode()
    with path.open("w", encoding="utf-8") as file:
        for number in range(times):
            file.write(
                re.sub(r'"frame_id": (\d+)', lambda match, of=100 * number: f'"frame_id": {int(match[1]) + of}', text)
            )
            record = {
                "artifact": {"name": "long"},
                "frame_id": 100 * number,
                "frame_compile_id": 0,
                "has_payload": True,
            }
            file.write(f"V1122 00:00:00.000000 7 torch/a.py:1] {json.dumps(record)}\n")
            file.writelines(f"\tline {line} of text {number}, which nobody else has\n" for line in range(lines))
    return path.stat().st_size


def peak(log: Path, out: Path) -> int:
    tracemalloc.start()
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            assert main(["report", str(log), "-o", str(out)]) == 0
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("suffix", "lines", "bound"),
    [(".log", 20_000, 0.2), (".log.gz", 20_000, 0.2), (".log", 1, 1.0)],
    ids=["long texts", "packed", "small functions"],
)
def test_memory_grows_by_a_part_of_what_the_log_grows(suffix: str, lines: int, bound: float, tmp_path: Path) -> None:
    """``bound`` is in bytes of memory for each byte of the log. Of small functions it is mostly times and metrics."""
    sizes, peaks = [], []
    for times in (1, 4, 12):  # the first report of a process imports modules and compiles patterns
        log = tmp_path / f"times_{times}{suffix}"
        sizes.append(repeated(log, times, lines))
        if suffix.endswith(".gz"):
            log.write_bytes(gzip.compress(log.read_bytes(), 1))
        peaks.append(peak(log, tmp_path / f"out_{times}"))
    assert peaks[2] - peaks[1] < bound * (sizes[2] - sizes[1])


@pytest.mark.slow
def test_graphs_that_were_counted_are_not_kept(tmp_path: Path) -> None:
    """The memory of a graph is a few numbers; what is read of each operation for it is dropped with its compilation."""
    lines = "".join(
        f'        x{n}: "f32[8]" = torch.ops.aten.sin.default(primals_1);  x{n} = None\n' for n in range(2000)
    )
    graph = (
        "class GraphModule(torch.nn.Module):\n"
        f'    def forward(self, primals_1: "f32[8]"):\n{lines}        return (primals_1,)\n'
    )
    payload = graph.replace("\n", "\n\t")[:-1]
    peaks = []
    for count in (1, 10, 30):
        log = tmp_path / f"{count}.log"
        with log.open("w", encoding="utf-8") as file:
            for number in range(count):
                record = {"aot_forward_graph": {}, "frame_id": number, "frame_compile_id": 0, "has_payload": True}
                file.write(f"V1122 00:00:00.000000 7 torch/a.py:1] {json.dumps(record)}\n\t{payload}")
        peaks.append(peak(log, tmp_path / f"out_{count}"))
    assert peaks[2] - peaks[1] < 20 * 50_000
