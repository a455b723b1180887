"""A program and the processes that it starts, each dumped into its own folder: ``DEPYF_DUMP``, ``run --follow``.

Processes inherit the environment: ``DEPYF_DUMP`` names the directory of all folders, and ``DEPYF_DUMP_PARENT`` the
folder of the process that started this one. The process without a parent writes the page of all when it ends.
"""

from __future__ import annotations

import atexit
import os
import sys
from typing import Dict, List, MutableMapping, Optional

from depyf.base.asynchronous import suppressed, synchronous
from depyf.base.messages import write
from depyf.base.visible import visible
from depyf.running.torch_import import when_compiler_is_imported
from depyf.torch_trace import file_names
from depyf.torch_trace.launches import VARIABLE, new_launch

DIRECTORY = "DEPYF_DUMP"
PARENT = "DEPYF_DUMP_PARENT"
VALUES = "DEPYF_VALUES"
FILES = "DEPYF_FILES"

_MOST_NAMED = 8
"""The limit on processes that are listed in the summary."""

_AT_START = os.path.join(os.path.dirname(os.path.abspath(__file__)), "at_start")


def begin_to_dump() -> None:
    """Dump what this process compiles, from its import of torch's compiler on, as the environment asks."""
    root = os.path.abspath(os.environ[DIRECTORY])
    is_first = PARENT not in os.environ
    _name_launch()
    folder = own_folder(os.environ)
    if is_first:
        _report_at_exit(root)
    os.environ[DIRECTORY], os.environ[PARENT] = root, folder  # a child may run in another directory

    def start() -> None:
        from depyf.dynamo.dump.own_folder import begin

        begin(root, folder, is_first=is_first)

    when_compiler_is_imported(start)


def _name_launch() -> None:
    """Name the launch if this is its first process."""
    if PARENT not in os.environ or not os.environ.get(VARIABLE):
        os.environ[VARIABLE] = new_launch()


def own_folder(environment: MutableMapping[str, str]) -> str:
    """Return the name of this process's folder: ``rank0`` for a rank, ``pid1234`` for others. A process that a rank has
    started also has the rank in its environment: it is ``rank0_pid1234``."""
    rank = environment.get("RANK", "")
    if not (rank.isdecimal() and environment.get("WORLD_SIZE", "").isdecimal()):  # "²" is a digit, and not a number
        return file_names.process_folder(None, os.getpid())
    plain = file_names.process_folder(int(rank), None)
    is_child = environment.get(PARENT, "").partition("_")[0] == plain
    return file_names.process_folder(int(rank), os.getpid()) if is_child else plain


def let_children_follow(root: str, values: Optional[str] = None, files: Optional[str] = None) -> str:
    """Make processes that this one starts later dump into folders of ``root``; return the name of its own folder.
    ``values`` and ``files`` are options of ``prepare_debug`` (``dump``) for them, too."""
    for variable, chosen in ((VALUES, values), (FILES, files)):
        if chosen is not None:
            os.environ[variable] = chosen
    folder = own_folder(os.environ)
    _name_launch()
    os.environ[DIRECTORY], os.environ[PARENT] = root, folder
    path = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([_AT_START, *([path] if path else [])])
    return folder


def is_one_of_many() -> bool:
    """Return whether this process is a rank of a large program. There no rank reads the dumps of the others: each would
    read all of them."""
    from depyf.report.diff.rank_groups import MOST_NAMED

    world = os.environ.get("WORLD_SIZE", "")
    return "RANK" in os.environ and world.isdecimal() and int(world) > MOST_NAMED


def page_later(root: str) -> str:
    """Return the message for programs in which no rank writes the page of all."""
    return f"the page of all ranks: depyf report {root}"


def _report_at_exit(root: str) -> None:
    process, earlier = os.getpid(), _written(root)

    def report() -> None:
        if os.getpid() == process and _written(root) != earlier:  # else the dump is that of another program
            with suppressed(OSError, ValueError, AttributeError):
                sys.stdout.flush()
            write(sys.stderr, "".join(f"depyf: {line}\n" for line in report_lines(root)))

    atexit.register(report)


def _written(root: str) -> Dict[str, int]:
    """Return the time of the last write to the folder of each process."""
    found = {}
    for name in file_names.process_folders(root):
        with suppressed(OSError):
            found[name] = os.stat(os.path.join(root, name)).st_mtime_ns  # manifests are replaced, not written into
    return found


def page_of_all(root: str) -> Optional[str]:
    """Return the path of the page of all processes; else ``None``."""
    path = os.path.join(root, file_names.page_file())
    return path if os.path.exists(path) else None


def report_lines(root: str) -> List[str]:
    """Write the page of all processes; return the lines of the summary, none if nothing was compiled."""
    try:
        if not file_names.process_folders(root):
            return []
        if is_one_of_many():
            return [visible(page_later(root))]
        from depyf.report.read.ranks import load_ranks
        from depyf.report.read.reading import EARLIER, NothingToRead
        from depyf.report.render.summary import summary_lines
        from depyf.report.render.writing import write_report

        try:
            ranks = load_ranks([root])
        except synchronous(NothingToRead):
            return []
        page, runs = write_report(ranks, root), ranks.runs
        total = ranks.total or len(runs)
        lines = [f"{total} process{'es' if total > 1 else ''} dumped into {root}"]
        lines += [f"  {each.name}: {next(iter(summary_lines(each.run)), '')}" for each in runs[:_MOST_NAMED]]
        if total > len(runs[:_MOST_NAMED]):
            lines.append(f"  and {total - len(runs[:_MOST_NAMED])} more")
        lines += [f"! {each['title']}" for each in ranks.differences()]
        lines += dict.fromkeys(note for each in runs for note in each.run.notes if note.startswith(EARLIER))
        return [visible(line) for line in [*lines, f"{'the page':<24}{page}"]]
    except synchronous() as error:
        return [visible(f"no page of all processes: {error}: depyf report {root} makes one")]
