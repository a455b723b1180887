"""The documents that ``--json`` prints: answers with their kind and versions (docs/json.md).

The schema of these documents, docs/answers.schema.json, is made from the types of the answers by
``tools/record/write_schema.py``.
"""

from __future__ import annotations

import json
import os
from typing import Dict, Mapping, Optional, Type

from depyf import __version__
from depyf.base.plain_data import Answer
from depyf.base.regular_files import write_whole

SCHEMA = 1
"""The version of the documents: it changes when a field is removed or gets another meaning, not when one is added."""

STARTS = b'{\n "kind": "run",'
"""How the document of ``depyf run`` starts."""


def document(answer: Answer, text: Optional[str] = None) -> Dict[str, object]:
    """Return an answer as ``--json`` prints it: with its kind, the versions, and what it prints as text."""
    return envelope(type(answer), answer.to_dict(), str(answer) if text is None else text)


def envelope(kind: Type[Answer], data: Mapping[str, object], text: str) -> Dict[str, object]:
    """Return a document around the data of an answer of this class."""
    return {"kind": kind._document, "schema": SCHEMA, "depyf": __version__, "text": text, "answer": data}


def write_answer(path: str, answer: Answer, text: Optional[str] = None) -> None:
    """Write the document of an answer, whole or not at all. Raises ``OSError``."""
    if os.path.islink(path):  # /dev/stdout: the link is not replaced
        with open(path, "w", encoding="utf-8") as file:
            file.write(as_json(answer, text))
    else:
        write_whole(path, [as_json(answer, text)])


def as_json(answer: Answer, text: Optional[str] = None) -> str:
    """Return the document of an answer as JSON, in ASCII."""
    return json.dumps(document(answer, text), indent=1, allow_nan=False)
