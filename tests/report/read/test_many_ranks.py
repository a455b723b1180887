"""Many ranks are compared by their summaries, and only the first and the odd ones are read as a whole."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Callable, List, Sequence

import pytest
from cost import grows_like

from depyf.cli import main
from depyf.report.diff.rank_groups import listed
from depyf.report.diff.rank_summary import (
    ONLY_A_SUMMARY,
    FunctionSummary,
    RankSummary,
    run_of_summary,
    summary_from_json,
    summary_json,
    summary_of,
)
from depyf.report.model.manifest import ManifestError, to_json
from depyf.report.model.run import Run
from depyf.report.read import ranks as reading_ranks
from depyf.report.read.ranks import load_ranks
from depyf.report.read.reading import load

LOGS = Path(__file__).resolve().parents[1] / "logs" / "ranks"
COUNT, SLOW, ODD = 40, (3, 17, 30), 23


def recorded() -> List[Run]:
    """The runs of two ranks; the second has a graph break and a recompilation that the first has not."""
    return [
        replace(
            loaded.run,
            artifacts=tuple(replace(each, text=loaded.text_of(each), path=None) for each in loaded.run.artifacts),
        )
        for loaded in load([str(LOGS)])
    ]


def of_rank(run: Run, rank: int, *, slow: bool) -> Run:
    compilations = tuple(replace(each, seconds=(each.seconds or 0.0) + 5.0 * slow) for each in run.compilations)
    return replace(run, rank=rank, compilations=compilations)


def write(root: Path, count: int = COUNT, odd: Sequence[int] = (ODD,), slow: Sequence[int] = SLOW) -> Path:
    """Write what ``count`` ranks leave behind."""
    usual, other = recorded()
    for rank in range(count):
        folder = root / f"rank{rank}"
        folder.mkdir(parents=True)
        run = of_rank(other if rank in odd else usual, rank, slow=rank in slow)
        (folder / "manifest.json").write_text(to_json(run), encoding="utf-8")
        (loaded,) = load([str(folder)])
        (folder / "rank_summary.json").write_text(summary_json(summary_of(loaded.side)), encoding="utf-8")
    return root


def titles(root: Path) -> List[str]:
    return [each["title"] for each in load_ranks([str(root)]).differences()]


FOUND = [
    "Graph break on rank 23 only (traced_ranks.py:28)",
    "shared was recompiled on rank 23 only",
    "uneven gave another graph on rank 23 only",
    "Compiling took up to 10.0 s longer on ranks 3, 17, 30 (3 ranks) than on most",
]


def test_stragglers_and_a_rank_that_compiled_something_else_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, read = write(tmp_path), []
    whole = reading_ranks.load_manifest
    monkeypatch.setattr(reading_ranks, "load_manifest", lambda path: (read.append(path), whole(path))[1])
    found = load_ranks([str(root)])
    assert [loaded.name for loaded in found.runs] == ["rank 0", "rank 3", "rank 17", "rank 23", "rank 30"]
    assert len(read) == 5, "the dumps of the other ranks are not read"
    assert [each["title"] for each in found.differences()] == FOUND
    head = found.in_numbers()
    assert head is not None
    assert head["title"] == "40 ranks, 1 compiled something else than most"
    assert list(head["ranks"]) == ["ranks 0 to 22, 24 to 39 (39 ranks)", "rank 23"]
    graph = next(each for each in found.differences() if "another graph" in each["title"])
    assert "class GraphModule" in graph["ranks"]["ranks 0 to 22, 24 to 39 (39 ranks)"]
    assert graph["ranks"]["rank 23"].startswith("@@")


def test_the_same_is_found_without_summaries_and_from_one_whole_reading(tmp_path: Path) -> None:
    root = write(tmp_path)
    summaries = load_ranks([str(root)]).summaries
    for path in root.glob("*/rank_summary.json"):
        path.unlink()
    assert load_ranks([str(root)]).summaries == summaries
    assert reading_ranks.of_runs(load([str(root)])).summaries == summaries
    assert titles(root) == FOUND


def test_summaries_alone_are_enough(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root, collected = write(tmp_path / "all"), tmp_path / "collected"
    for rank in range(COUNT):
        assert main(["report", str(root / f"rank{rank}"), "--summaries", str(collected)]) == 0
    assert len(list(collected.iterdir())) == COUNT
    assert max(path.stat().st_size for path in collected.iterdir()) < 4_000
    assert titles(collected) == FOUND
    capsys.readouterr()
    assert main(["report", str(collected), "-o", str(tmp_path / "page")]) == 0
    printed = capsys.readouterr().out
    assert f"note: {ONLY_A_SUMMARY}" in printed
    assert "! Graph break on rank 23 only" in printed


def test_the_page_stays_small(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = write(tmp_path, 300)
    assert main(["report", str(root)]) == 0
    printed = capsys.readouterr().out
    assert "300 ranks, 1 compiled something else than most; shown are rank 0, rank 3, rank 17" in printed
    page, index = (root / name for name in ("index.html", "index.md"))
    assert page.stat().st_size < 500_000
    assert index.read_text(encoding="utf-8").count("\n# rank") == 5
    assert "ranks 0 to 22, 24 to 299 (299 ranks)" in page.read_text(encoding="utf-8")


def test_ranks_that_compile_the_same_differ_in_nothing(tmp_path: Path) -> None:
    root = write(tmp_path, odd=(), slow=())
    found = load_ranks([str(root)])
    assert found.differences() == []
    assert [loaded.name for loaded in found.runs] == ["rank 0"]
    head = found.in_numbers()
    assert head is not None
    assert head["title"] == "40 ranks, compiled the same"


def test_half_of_the_ranks_may_compile_something_else(tmp_path: Path) -> None:
    root = write(tmp_path, 20, odd=range(10, 20), slow=())
    assert titles(root)[0] == "Graph break on ranks 10 to 19 (10 ranks) only (traced_ranks.py:28)"
    assert [loaded.name for loaded in load_ranks([str(root)]).runs] == ["rank 0", "rank 10"]


def test_an_old_summary_is_not_believed(tmp_path: Path) -> None:
    root = write(tmp_path, odd=())
    folder = root / f"rank{ODD}"
    (folder / "manifest.json").write_text(to_json(of_rank(recorded()[1], ODD, slow=False)), encoding="utf-8")
    before = os.stat(folder / "rank_summary.json").st_mtime - 60
    os.utime(folder / "rank_summary.json", (before, before))
    assert titles(root) == FOUND


HOSTILE = {
    "empty": "",
    "no object": "[1]",
    "no schema": "{}",
    "newer": '{"schema": 99}',
    "deep": "[" * 100_000,
    "seconds": '{"schema": 1, "rank": 5, "seconds": "long"}',
    "functions": '{"schema": 1, "rank": 5, "functions": 5}',
    "nested": '{"schema": 1, "rank": 5, "functions": [{"name": [], "compilations": {}}]}',
    "twice": '{"schema": 1, "rank": 5, "functions": [{"name": "f"}, {"name": "f"}]}',
    "rank": '{"schema": 1, "rank": "../..", "seconds": 1.0}',
    "phases": '{"schema": 1, "rank": 5, "phases": 7}',
    "larger than any float": '{"schema": 1, "rank": 5, "seconds": 1%s}' % ("0" * 400),
    "negative rank": '{"schema": 1, "rank": -5}',
    "count": '{"schema": 1, "rank": 5, "breaks": [{"path": "a", "line": 1, "title": "t", "count": 1%s}]}'
    % ("0" * 4200),
    "line": '{"schema": 1, "rank": 5, "functions": [{"name": "f", "line": 1%s}]}' % ("0" * 4200),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_damaged_summary_is_replaced_by_one_of_the_dump_or_named(kind: str, tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match=r"a\.json"):
        summary_from_json(HOSTILE[kind], "a.json")
    root = write(tmp_path)
    summary = root / "rank5" / "rank_summary.json"
    summary.write_text(HOSTILE[kind], encoding="utf-8")
    assert titles(root) == FOUND
    (root / "rank5" / "manifest.json").unlink()
    found = load_ranks([str(root)])
    assert len(found.summaries) == COUNT - 1
    assert any("left out" in note and "rank_summary.json" in note for note in found.runs[0].run.notes)


def test_numbers_that_are_none_do_not_stop_a_comparison() -> None:
    text = '{"schema": 1, "rank": 5, "seconds": NaN, "phases": {"a": Infinity, "b": "x", "c": -1}}'
    summary = summary_from_json(text, "a.json")
    assert (summary.seconds, summary.phases) == (0.0, {"a": 0.0, "b": 0.0, "c": 0.0})
    text = '{"schema": 1, "started": 1e300, "seconds": 1e300, "phases": {"a": 1%s}}' % ("0" * 400)
    summary = summary_from_json(text, "a.json")
    assert (summary.started, summary.seconds, summary.phases) == (None, 0.0, {"a": 0.0})


def test_the_functions_of_a_summary_are_looked_up_and_not_searched() -> None:
    def reading(count: int) -> Callable[[], object]:
        functions = tuple(FunctionSummary(f"f{at}", path=f"p{at}") for at in range(count))

        def read() -> None:
            run = run_of_summary(RankSummary(functions=functions))
            assert [each.source for each in run.functions] == list(range(count))

        return read

    assert grows_like(reading, 500, 4) < 1.05


def test_ranks_of_several_launches_have_summaries_of_their_own(tmp_path: Path) -> None:
    usual, other = recorded()
    for folder, run in (("one", usual), ("two", other)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "manifest.json").write_text(to_json(of_rank(run, 0, slow=False)), encoding="utf-8")
    assert main(["report", str(tmp_path / "one"), str(tmp_path / "two"), "--summaries", str(tmp_path / "all")]) == 0
    assert [each.name for each in load_ranks([str(tmp_path / "all")]).summaries] == ["rank 0", "rank 0 (2)"]


def test_a_summary_is_read_as_it_was_written() -> None:
    for loaded in load([str(LOGS)]):
        summary = summary_of(loaded.side)
        assert replace(summary_from_json(summary_json(summary), "x"), name=loaded.name) == summary
        assert json.loads(summary_json(summary))["schema"] == 1
        assert [each.compile_id for each in run_of_summary(summary).compilations]


def test_a_rank_without_a_dump_is_shown_with_what_its_summary_says(tmp_path: Path) -> None:
    root = write(tmp_path)
    (root / f"rank{ODD}" / "manifest.json").unlink()
    odd = next(loaded for loaded in load_ranks([str(root)]).runs if loaded.run.rank == ODD)
    assert ONLY_A_SUMMARY in odd.run.notes
    assert titles(root) == FOUND


def test_a_rank_whose_folder_is_gone_is_left_out(tmp_path: Path) -> None:
    root = write(tmp_path)
    shutil.rmtree(root / "rank5")
    (root / "rank6" / "manifest.json").write_text("{", encoding="utf-8")
    (root / "rank6" / "rank_summary.json").unlink()
    found = load_ranks([str(root)])
    assert len(found.summaries) == COUNT - 2
    assert any("rank6" in note for note in found.runs[0].run.notes)


def test_names_of_many_ranks_are_short() -> None:
    assert listed([]) == ""
    assert listed(["rank 1"]) == "rank 1"
    assert listed(["rank 3", "rank 1", "rank 2"]) == "ranks 1 to 3 (3 ranks)"
    assert listed(["a", "b", "rank 2"]) == "a, b, rank 2"
    assert listed([f"rank {number}" for number in range(0, 100, 2)]).endswith("and 42 more (50 ranks)")
    assert listed([f"run {number}" for number in range(20)]).endswith("run 7 and 12 more")


def test_nothing_is_too_strange_to_be_compared() -> None:
    strange = [RankSummary(name=str(number)) for number in range(12)]
    assert reading_ranks.Ranks([], strange, 12).differences() == []


def test_ranks_of_an_earlier_launch_are_named(tmp_path: Path) -> None:
    root = write(tmp_path, 20, odd=(), slow=())
    for rank in range(20):
        path = root / f"rank{rank}" / "rank_summary.json"
        data = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(json.dumps({**data, "started": 5000.0 - 3600.0 * (rank >= 12)}), encoding="utf-8")
    (note,) = [each for each in load_ranks([str(root)]).runs[0].run.notes if "earlier launch" in each]
    assert note.startswith("ranks 12 to 19 (8 ranks) began")
    assert not any("earlier launch" in each for each in load_ranks([str(write(tmp_path / "new"))]).runs[0].run.notes)
