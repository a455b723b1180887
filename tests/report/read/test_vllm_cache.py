"""What is in a cache directory of vLLM, read without running it, and which factors of two hashes differ."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Dict

import pytest

from depyf.cli import main
from depyf.report.read.vllm_cache import differing_factors, read_vllm_caches

INDEX = """{   ((1, 8192), 0, 'inductor_standalone'): ('artifact_compile_range_1_8192_subgraph_0', 'x'),
    ((1, 8192), 1, 'inductor_standalone'): ('artifact_compile_range_1_8192_subgraph_1', 'x'),
    (   None,
        2, 'inductor'): ('fx', 'y'),
    ((8, 8), '3fa0', 'inductor_standalone'): 'z'}
"""


def cache(root: Path, number: str, dtype: str, age: int) -> Path:
    folder = root / "torch_compile_cache" / number / "rank_0_0" / "backbone"
    folder.mkdir(parents=True)
    factors: Dict[str, object] = {"env": {"VLLM_USE_V1": True}, "config": {"model": {"dtype": dtype}}, "code": ["a.py"]}
    (folder / "cache_key_factors.json").write_text(json.dumps({**factors, "config_hash": f"of {dtype}"}))
    (folder / "vllm_compile_cache.py").write_text(INDEX)
    (folder / "computation_graph.py").write_text("raise SystemExit('this was run')")
    (folder / "inductor_cache").mkdir()
    (folder / "inductor_cache" / "kernel.bin").write_bytes(b"x" * 200_000)
    for path in folder.rglob("*"):
        os.utime(path, (age, age))
    return folder


def test_what_is_in_it_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cache(tmp_path, "1517964802", "bfloat16", 1_000_000)
    assert main(["report", "--caches", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "1517964802/rank_0_0/backbone" in said
    assert "4 compiled graphs, by sizes: 1 to 8192 (2), any size (1), 8 to 8 (1)" in said
    assert "inductor_cache/ 0.2 MB" in said
    assert "env (1), config (1), code (1); config_hash of bfloat16" in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["torch_compile_cache"]  # no page was written


def test_two_of_them_are_compared_by_their_factors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    newer = cache(tmp_path / "one", "aaaaaaaaaa", "float16", 2_000_000)
    older = cache(tmp_path / "other", "bbbbbbbbbb", "bfloat16", 1_000_000)
    assert main(["report", "--caches", str(newer), str(older.parent)]) == 0
    said = capsys.readouterr().out
    assert "factors of bbbbbbbbbb/rank_0_0/backbone (older) and aaaaaaaaaa/rank_0_0/backbone (newer)" in said
    assert "config.model.dtype: bfloat16 before, float16 now" in said


def test_what_can_not_be_read_is_said(tmp_path: Path) -> None:
    folder = cache(tmp_path, "cccccccccc", "float16", 1_000_000)
    (folder / "cache_key_factors.json").write_text("{" * 100_000)
    (damaged,) = read_vllm_caches(str(tmp_path))
    assert "is not stored" in "".join(damaged.lines())
    assert "not known" in differing_factors(damaged, damaged)[0]
    link = tmp_path / "linked"
    link.mkdir()
    (link / "vllm_compile_cache.py").symlink_to(folder / "vllm_compile_cache.py")
    (linked,) = read_vllm_caches(str(link))
    assert not linked.sizes  # a link may lead anywhere


def test_an_artifact_of_ahead_of_time_compilation(tmp_path: Path) -> None:
    folder = tmp_path / "torch_aot_compile" / "9a5549f2" / "rank_0_0"
    folder.mkdir(parents=True)
    (folder / "model").write_bytes(b"\x80\x04")
    (found,) = read_vllm_caches(str(tmp_path))
    assert found.title == "9a5549f2/rank_0_0"
    assert dict(found.content) == {"model": 2}
