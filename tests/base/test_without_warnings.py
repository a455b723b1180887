"""The filter for work of depyf leaves no trace in the warnings of the program."""

from __future__ import annotations

import os
import threading
import warnings

import pytest

from depyf.base.without_warnings import without_warnings


def shown() -> int:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn("the program's own", stacklevel=1)
    return len(caught)


def test_filters_that_another_thread_has_copied_ignore_nothing_afterwards() -> None:
    copied, ended = threading.Event(), threading.Event()

    def copy_the_filters() -> None:
        with warnings.catch_warnings():
            copied.set()
            ended.wait(10)

    thread = threading.Thread(target=copy_the_filters)
    with warnings.catch_warnings(record=True) as messages:
        warnings.simplefilter("always")
        with without_warnings():
            thread.start()
            copied.wait(10)
        warnings.warn("the program's own", stacklevel=1)
        ended.set()
        thread.join()
    assert [str(each.message) for each in messages] == ["the program's own"]


def test_a_warning_of_the_work_is_ignored_and_one_of_another_thread_is_not() -> None:
    with warnings.catch_warnings(record=True) as messages:
        warnings.simplefilter("always")
        with without_warnings():
            warnings.warn("of the work", stacklevel=1)
            thread = threading.Thread(target=lambda: warnings.warn("of the program", stacklevel=1))
            thread.start()
            thread.join()
    assert [str(each.message) for each in messages] == ["of the program"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_has_its_warnings() -> None:
    with without_warnings():
        child = os.fork()
        if child == 0:
            os._exit(shown() if shown() == 1 else 9)
        _, status = os.waitpid(child, 0)
    assert os.WEXITSTATUS(status) == 1
