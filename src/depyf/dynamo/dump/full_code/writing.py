"""Write ``full_code_for_<function>_<n>.py``: all code of one user function as one importable Python file.

The file holds the transformed code of every cache entry, the user's own function, ``transformed_<function>``, which
chooses among all these functions as Dynamo does, the resume functions with their entries, stubs that name the compiled
graphs, and last the guards of every entry. Importing the file runs no code of the user.
"""

from __future__ import annotations

from types import CodeType
from typing import Callable, Dict, List, Mapping, Sequence, Tuple

from depyf.base.asynchronous import suppressed
from depyf.base.quick_dataclass import replace
from depyf.dynamo.capture.records import FullCodeFile
from depyf.dynamo.capture.session import Session
from depyf.dynamo.dump.full_code.constants import Constant, Constants, constant_definition
from depyf.dynamo.dump.full_code.functions import (
    Problem,
    StoryText,
    no_problem,
    original_name,
    problem_in_place,
    story_text,
)
from depyf.dynamo.dump.full_code.original import original_of
from depyf.dynamo.dump.full_code.story import Story, stories_of, stories_of_code
from depyf.dynamo.dump.full_code.text import commented, why_it_does_not_compile
from depyf.dynamo.dump.full_code.user_globals import definition_of, missing_names
from depyf.dynamo.guards import entry_guards as guard_rendering
from depyf.dynamo.guards.entry_guards import EntryGuards, with_common_once
from depyf.dynamo.guards.live_values import LiveTable, register
from depyf.dynamo.guards.stable_expressions import Naming
from depyf.dynamo.hooks.cache_entries import global_scope
from depyf.dynamo.hooks.nested_code import names_in
from depyf.dynamo.hooks.safely import safely
from depyf.dynamo.store.names import StableNames, compiled_fn_number
from depyf.report.model.headline import many
from depyf.torch_trace import file_names
from depyf.torch_trace.stages import place_in_order

_RUNTIME = "depyf.dynamo.dump.full_code.runtime"
_HELPERS = ("___bind_globals", "___call_global", "___contents", "___placeholder", "___run_bytecode")


def write_full_code(session: Session) -> List[FullCodeFile]:
    """Write the file of every user function that was transformed in this session; return what was written.

    A function whose file can't be made is reported and does not affect the others.
    """
    written: List[FullCodeFile] = []
    for stories in stories_of(session):
        doing = f"writing the full_code file of {stories[0].code.co_name}"
        safely(doing)(_write_one)(session, stories, written)
    return written


def _write_one(session: Session, stories: Sequence[Story], written: List[FullCodeFile]) -> None:
    stem = stories[0].stem
    number = session.directory.take_number(f"full code of {stem}")
    text, table = full_code(stories, session.stable, lambda name: _files_of(name, session))
    path = session.directory.write(file_names.full_code_file(stem, number), text)
    if path is not None:
        register(path, table)
        code = stories[0].code
        written.append(FullCodeFile(None, path, (code.co_name, code.co_filename, code.co_firstlineno)))


def _files_of(name: str, session: Session) -> List[str]:
    """Return the names of the files with the graph of that compiled function, by stage (of a warm cache, too)."""
    graphs, kernels = session.files_of(name)
    graphs.sort(key=lambda record: place_in_order(record.stage))
    files = [(record.path, record.runs) for record in graphs if not record.equals]
    files += [(record.path, record.runs) for record in kernels]
    shown = (
        session.directory.name_of(path) + (", which runs" if runs else "") for path, runs in files if path is not None
    )
    return list(dict.fromkeys(shown))


def dump_src(code: CodeType) -> str:
    """Return the text of the file for a function that was compiled at any time, given its original code object."""
    stable = StableNames()
    return full_code(stories_of_code(code, stable), stable, lambda name: [])[0]


def full_code(
    stories: Sequence[Story], stable: StableNames, files_of: Callable[[str], Sequence[str]]
) -> Tuple[str, LiveTable]:
    """Return the text of the file for a user function and its resume functions, and what the file needs at run time.
    ``files_of`` returns the names of the files with the graph of a compiled function. In place of values that
    ``stable`` hides the file asks the process that compiled."""
    hidden = stable.hidden
    constants = Constants(hidden)
    stories = [replace(story, entries=tuple(map(constants.in_entry, story.entries))) for story in stories]
    naming = Naming(stable.text, None if hidden is None else hidden.guard)
    of_functions = [(story.stem, [entry.name for entry in story.entries]) for story in stories]
    guards, common = with_common_once(_guards_of(stories, naming), of_functions)
    real_names = _real_names(stories, stable.text)
    naming.names.update(real_names)

    def whole(problem_of: Problem) -> Tuple[str, str]:
        # Definitions of the user's globals stand above the functions, and depend on all names that these read.
        texts = _story_texts(stories, guards, constants, problem_of)
        top, stubs = _top(stories, texts, list(guards.values())), _stubs(stories, files_of)
        own = "\n\n\n".join([top, *stubs, *(text.text for text in texts)])
        defined = _globals(stories, own, guards, real_names, constants)
        # The code is what is read; names are looked up when it is called, so guards and graphs may stand below.
        functions = "\n\n\n".join([*(text.text for text in texts), *stubs])
        of_guards = [*(each.source().rstrip() for each in common), *(each for text in texts for each in text.guards)]
        return "\n".join([top, defined, "", functions, ""]), "".join(f"\n\n{each}\n" for each in of_guards)

    # First without checking the pieces: the file compiles nearly always, and compiling each piece costs as much again.
    # Otherwise each piece is compiled on its own, and a piece that does not compile becomes a comment. Functions of
    # guards compile: each of their conditions was parsed, or has a form that is known to be Python (``tidy``).
    with suppressed(SyntaxError, ValueError, RecursionError, MemoryError):  # a piece is not Python
        text, of_guards = whole(no_problem)
        if why_it_does_not_compile(text) is None:
            return text + of_guards, _table(stories, list(guards.values()), naming, constants.known)
    text, of_guards = whole(problem_in_place)
    problem = why_it_does_not_compile(text)
    text += of_guards
    if problem is not None:
        # Every piece compiles, so this is a bug of depyf. The text stays readable as comments.
        text = f'"""This file does not compile ({problem}); its text is below as comments."""\n\n{commented(text)}\n'
    return text, _table(stories, list(guards.values()), naming, constants.known)


def _story_texts(
    stories: Sequence[Story], guards: Mapping[str, EntryGuards], constants: Constants, problem_of: Problem
) -> List[StoryText]:
    """Return one text a story. Dynamo makes new names for a repeated resume function: they become aliases."""
    texts: List[StoryText] = []
    names: Dict[int, str] = {}
    for story in stories:
        first_name = names.get(id(story.code))
        if first_name is not None and story.called_as is not None:
            texts.append(StoryText(f"{story.called_as} = {first_name}", story.called_as))
        else:
            original = constants.in_original(original_of(story.code, original_name(story)), story.code)
            texts.append(story_text(story, original, guards, problem_of))
            names[id(story.code)] = story.called_as or texts[-1].dispatcher
    return texts


def _guards_of(stories: Sequence[Story], naming: Naming) -> Dict[str, EntryGuards]:
    """Return the guards by the name of the transformed function; entries that left the cache have none."""
    found: Dict[str, EntryGuards] = {}
    for story in stories:
        for entry in story.entries:
            if entry.manager is not None and entry.name not in found:
                name = f"__guard_{entry.number}_for_{story.stem}"
                found[entry.name] = EntryGuards.of(entry.manager, name, naming)
    return found


def _real_names(stories: Sequence[Story], stable: Callable[[str], str]) -> Dict[str, str]:
    """Return the globals of the transformed code whose names differ from run to run, by stable name."""
    found: Dict[str, str] = {}
    for code in _codes(stories):
        for name in names_in(code):
            if stable(name) != name:
                found[stable(name)] = name
    return found


def _codes(stories: Sequence[Story]) -> List[CodeType]:
    return [entry.code for story in stories for entry in story.entries if entry.code is not None]


def _table(
    stories: Sequence[Story], guards: Sequence[EntryGuards], naming: Naming, constants: Mapping[str, Constant]
) -> LiveTable:
    codes = {e.name: e.code for story in stories for e in story.entries if e.code is not None and e.source is None}
    places = {name: (constant.code, constant.position) for name, constant in constants.items()}
    return guard_rendering.live_table_of(guards, naming, codes, places)


def _stubs(stories: Sequence[Story], files_of: Callable[[str], Sequence[str]]) -> List[str]:
    """Return a function for every compiled graph that the transformed code calls; it names the files with the graph."""
    called = (compiled_fn_number(name) for code in _codes(stories) for name in names_in(code))
    names = [f"__compiled_fn_{number}" for number in sorted({n for n in called if n is not None})]
    return [_stub(name, files_of(name)) for name in names]


def _stub(name: str, files: Sequence[str]) -> str:
    listed = "".join(f"\n        {file}" for file in files) or " none was dumped"
    docstring = f'"""A compiled graph. Its files:{listed}\n    """'
    return f"def {name}(*args):\n    {docstring}\n    return ___call_global(___live, {name!r}, *args)"


def _globals(
    stories: Sequence[Story],
    own: str,
    guards: Mapping[str, EntryGuards],
    real_names: Mapping[str, str],
    constants: Constants,
) -> str:
    """Return definitions of the user's globals, and of constants without literal, that the functions read.

    ``own`` is the file without the functions of guards, which read only what is imported for them.
    """
    known = {guard.name for guard in guards.values()}
    scope: Mapping[str, object] = {}
    for story in stories:
        for entry in story.entries:
            scope = scope or global_scope(entry.manager)
    definitions: List[str] = []
    placeholders: List[str] = []
    for name in missing_names(own, known):
        if name in constants.known:
            definition, is_placeholder = constant_definition(constants.known[name], constants.hidden)
        else:
            definition, is_placeholder = definition_of(name, scope, real_names.get(name, name), constants.hidden)
        definitions.append(definition)
        if is_placeholder:
            placeholders.append(name)
    if placeholders:
        definitions.append(f"___bind_globals(___live, globals(), {placeholders!r})")
    if not definitions:
        return ""
    return "\n".join(["# The user's globals that are read below.", *definitions, ""])


def _top(stories: Sequence[Story], texts: Sequence[StoryText], guards: Sequence[EntryGuards]) -> str:
    code = stories[0].code
    once = list({id(story.code): story for story in stories}.values())  # Dynamo may call one by several names
    entries = sum(len(story.entries) for story in once)
    resumed = sum(bool(story.entries) for story in once[1:])  # not those of branches that were never taken
    fallbacks = sum(len(story.fallbacks) for story in once)
    lines = [
        f'"""{_docstring_safe(code.co_name)} under torch.compile ({_docstring_safe(code.co_filename)}, '
        f"line {code.co_firstlineno}).",
        "",
        f"Call {texts[0].dispatcher} for what Dynamo does: it tries the guards of each cache entry and runs the code",
        "of the first that holds, or the function itself. Imported in the process that compiled, it works on the",
        "real objects; elsewhere it is there to be read.",
        "",
        f"Here: {many(entries, 'transformed code object')}, {many(resumed, 'resume function')}"
        + (f", {many(fallbacks, 'fallback to eager', 'fallbacks to eager')}." if fallbacks else "."),
        '"""',
        "",
        "from __future__ import annotations",
        "",
        guard_rendering.header(guards),
        f"from {_RUNTIME} import {', '.join(_HELPERS)}",
        "",
    ]
    return "\n".join(lines)


def _docstring_safe(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', "'")
