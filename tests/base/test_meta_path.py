"""Finders come and go in ``sys.meta_path`` without a new list, and no search under way loses one of the others."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import threading
from typing import Any, Iterator, List

import pytest

from depyf.base import meta_path


class Finder:
    """A finder that finds nothing, and waits inside its search if it is told to."""

    def __init__(self) -> None:
        self.asked: List[str] = []
        self.entered, self.go_on = threading.Event(), threading.Event()
        self.go_on.set()

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> None:
        if name.startswith("searched_for_by_depyfs_tests"):
            self.asked.append(name)
            self.entered.set()
            assert self.go_on.wait(60)

    def __eq__(self, other: object) -> bool:
        raise AssertionError("finders of others are not compared")

    __hash__ = None  # type: ignore[assignment]


@pytest.fixture(autouse=True)
def as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[List[Any]]:
    before = sys.meta_path
    content = list(before)
    yield before  # type: ignore[misc]
    sys.meta_path = before
    before[:] = content
    meta_path._present.clear()
    meta_path._ended.clear()


def test_the_list_stays_the_same_one_with_what_others_add(as_before: List[Any]) -> None:
    others, ours, theirs = list(as_before), Finder(), Finder()
    meta_path.insert_first(ours)
    meta_path.insert_first(ours)
    as_before.insert(0, theirs)
    assert [each is ours for each in as_before] == [False, True, *(False for _ in others)]
    meta_path.remove(ours)
    meta_path.remove(ours)
    assert sys.meta_path is as_before
    assert as_before[0] is theirs
    assert all(now is before for now, before in zip(as_before[1:], others))
    assert len(as_before) == len(others) + 1


def test_the_finder_leaves_both_lists_if_the_program_exchanges_its_list(as_before: List[Any]) -> None:
    ours = Finder()
    meta_path.insert_first(ours)
    sys.meta_path = list(as_before)
    meta_path.remove(ours)
    assert not any(each is ours for each in (*as_before, *sys.meta_path))
    assert not meta_path._ended


def test_a_finder_stays_until_a_search_on_another_thread_has_ended(as_before: List[Any]) -> None:
    ours, theirs = Finder(), Finder()
    meta_path.insert_first(ours)
    as_before.append(theirs)
    theirs.go_on.clear()
    first = as_before[1]
    thread = threading.Thread(target=importlib.util.find_spec, args=("searched_for_by_depyfs_tests_1",))
    thread.start()
    assert theirs.entered.wait(60)
    meta_path.remove(ours)
    assert as_before[0] is ours, "the thread is at the last finder, by its index"
    theirs.go_on.set()
    thread.join()
    meta_path.remove()
    assert as_before[0] is first
    assert (len(ours.asked), len(theirs.asked)) == (1, 1)


def test_a_finder_that_is_removed_inside_of_a_search_stays_until_it_ends(as_before: List[Any]) -> None:
    ours, theirs = Finder(), Finder()
    meta_path.insert_first(ours)
    as_before.append(theirs)

    class Removing(Finder):
        def find_spec(self, name: str, path: object = None, target: object = None) -> None:
            meta_path.remove(ours)
            assert as_before[0] is ours

    as_before.insert(1, Removing())
    assert importlib.util.find_spec("searched_for_by_depyfs_tests_2") is None
    assert len(theirs.asked) == 1, "it was not left out"
    other = Finder()
    meta_path.insert_first(other)  # the next change removes what is left
    assert not any(each is ours for each in as_before)
    meta_path.remove(other)


def test_searches_of_many_threads_find_everything_while_finders_come_and_go(as_before: List[Any]) -> None:
    missed: List[int] = []
    ended = threading.Event()
    theirs = Finder()
    as_before.append(theirs)

    def search(number: int) -> None:
        for index in range(300):
            importlib.util.find_spec(f"searched_for_by_depyfs_tests_{number}_{index}")
            if f"searched_for_by_depyfs_tests_{number}_{index}" not in theirs.asked:
                missed.append(index)
        ended.set()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=search, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        while not ended.is_set():
            ours = Finder()
            meta_path.insert_first(ours)
            meta_path.remove(ours)
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert missed == []
    meta_path.remove()
    assert not any(isinstance(each, Finder) and each is not theirs for each in as_before)
