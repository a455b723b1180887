"""Check answers against docs/answers.schema.json. A field that the schema lacks is an error, too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict

import pytest

SCHEMA = Path(__file__).resolve().parents[2] / "docs" / "answers.schema.json"


def _strict() -> Dict[str, Any]:
    whole: Dict[str, Any] = json.loads(SCHEMA.read_text())
    for each in (*whole["$defs"].values(), *whole["oneOf"]):
        each["additionalProperties"] = False
    return whole


def answer_of(text: str, kind: str) -> Any:
    """Return the answer in a document that was printed; fail if the document does not follow the schema."""
    found = json.loads(text)
    check(found)
    assert found["kind"] == kind
    return found["answer"]


def check(document: Dict[str, Any]) -> None:
    """Fail if a document does not follow the schema."""
    jsonschema = pytest.importorskip("jsonschema")
    whole = _strict()
    ours = next(each for each in whole["oneOf"] if each["properties"]["kind"]["const"] == document["kind"])
    jsonschema.validate(document, {"$defs": whole["$defs"], **ours})


def checked(answer: Any) -> Dict[str, Any]:
    """Return an answer as data, checked."""
    from depyf.running.documents import as_json

    answer = getattr(answer, "answer", answer)
    document = json.loads(as_json(answer))
    check(document)
    found: Dict[str, Any] = document["answer"]
    assert found == json.loads(json.dumps(answer.to_dict()))
    return found
