"""Names for modules and callable objects of libraries that PyTorch compiles in a function of its own: a log of its
trace has the name of that function, ``inner``."""

from __future__ import annotations

from typing import Dict, Optional, Sequence

from depyf.diagnosis.guard_sources import class_name
from depyf.lazy_pattern import re_compile
from depyf.report.analysis.compilations import Compilations
from depyf.report.model.run import Guard

_FILE = re_compile(r"(?:^|[/\\])torch[/\\]_dynamo[/\\]external_utils\.py\Z")
_NAME, _WRAPPED = "inner", "L['fn']"
_TYPE = re_compile(r"type=(<class '[^']*'>)")


def wrapped_names(known: Compilations) -> Dict[str, str]:
    """Return the qualified names of what is called (``Sequential.forward``) by compile id, as far as guards have the
    class, those of another compilation of the same frame for one that failed."""
    names: Dict[str, str] = {}
    for compile_id in known.ids():
        key = known.key_of(compile_id)
        if key is not None and key[0] == _NAME and _FILE.search(key[1]):
            frame = compile_id.partition("/")[0]
            name = _name_of(known.guards(compile_id)) or names.get(frame)
            if name is not None:
                names[compile_id] = names[frame] = name
    return names


def _name_of(guards: Sequence[Guard]) -> Optional[str]:
    wrapped = (_TYPE.search(guard.text) for guard in guards if guard.kind == "TYPE_MATCH" and guard.source == _WRAPPED)
    found = next((class_name(match.group(1)) for match in wrapped if match is not None), None)
    is_module = any(f"'forward', {_WRAPPED}.__dict__" in guard.text for guard in guards)
    return found and f"{found.rpartition('.')[2]}.{'forward' if is_module else '__call__'}"
