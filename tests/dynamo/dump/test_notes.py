"""Each text about a dump as a whole is made once."""

from __future__ import annotations

from typing import get_args

import pytest

pytestmark = pytest.mark.torch
pytest.importorskip("torch")

from depyf.dynamo.dump.notes import AT_THE_END, SO_FAR  # noqa: E402
from depyf.torch_trace.file_names import Note  # noqa: E402


def test_every_note_is_in_one_of_the_tables() -> None:
    notes = [*SO_FAR, *AT_THE_END]
    assert sorted(notes) == sorted(get_args(Note)), "each Note of file_names.py has a row in dynamo/dump/notes.py"
