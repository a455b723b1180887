"""A program and the processes that it starts, each dumped into a folder of its own: ``DEPYF_DUMP``, ``run --follow``.

The environment is what processes inherit: ``DEPYF_DUMP`` names the directory of all folders, and ``DEPYF_DUMP_PARENT``
the folder of the process that started this one. The process without a parent writes the page of all when it ends.
"""

from __future__ import annotations

import atexit
import os
import sys
from typing import Dict, List, MutableMapping, Optional

from depyf import file_names
from depyf.asynchronous import suppressed, synchronous
from depyf.messages import write
from depyf.running.torch_import import when_compiler_is_imported
from depyf.visible import visible

DIRECTORY = "DEPYF_DUMP"
PARENT = "DEPYF_DUMP_PARENT"

_MOST_NAMED = 8
"""So many processes are named in the summary."""

_AT_START = os.path.join(os.path.dirname(os.path.abspath(__file__)), "at_start")


def begin_to_dump() -> None:
    """Dump what this process compiles, from the moment that it imports torch's compiler, as the environment says."""
    root = os.path.abspath(os.environ[DIRECTORY])
    is_first = PARENT not in os.environ
    folder = own_folder(os.environ)
    if is_first:
        _report_at_exit(root)
    os.environ[DIRECTORY], os.environ[PARENT] = root, folder  # a child may run in another directory

    def start() -> None:
        from depyf.dynamo.dump.own_folder import begin

        begin(root, folder)

    when_compiler_is_imported(start)


def own_folder(environment: MutableMapping[str, str]) -> str:
    """Return the name of this process's folder: ``rank0`` for that of a rank, ``pid1234`` for others.

    A process that a rank has started has the rank in its environment, too: it is ``rank0_pid1234``.
    """
    rank = environment.get("RANK", "")
    if not (rank.isdecimal() and environment.get("WORLD_SIZE", "").isdecimal()):  # "²" is a digit, and no number
        return file_names.process_folder(None, os.getpid())
    plain = file_names.process_folder(int(rank), None)
    is_child = environment.get(PARENT, "").partition("_")[0] == plain
    return file_names.process_folder(int(rank), os.getpid()) if is_child else plain


def let_children_follow(root: str) -> str:
    """Let processes that this one starts from now on dump into folders of ``root``; return the name of its own."""
    folder = own_folder(os.environ)
    os.environ[DIRECTORY], os.environ[PARENT] = root, folder
    path = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([_AT_START, *([path] if path else [])])
    return folder


def _report_at_exit(root: str) -> None:
    process, earlier = os.getpid(), _written(root)

    def report() -> None:
        if os.getpid() == process and _written(root) != earlier:  # else the dump is that of another program
            with suppressed(OSError, ValueError, AttributeError):
                sys.stdout.flush()
            write(sys.stderr, "".join(f"depyf: {line}\n" for line in report_lines(root)))

    atexit.register(report)


def _written(root: str) -> Dict[str, int]:
    """Return when the folder of each process was last written."""
    found = {}
    for name in file_names.process_folders(root):
        with suppressed(OSError):
            found[name] = os.stat(os.path.join(root, name)).st_mtime_ns  # manifests are replaced, not written into
    return found


def page_of_all(root: str) -> Optional[str]:
    """Return the path of the page of all processes, where there is one."""
    path = os.path.join(root, file_names.page_file())
    return path if os.path.exists(path) else None


def report_lines(root: str) -> List[str]:
    """Write the page of all processes; return what there is to say of them. Nothing where nothing was compiled."""
    try:
        if not file_names.process_folders(root):
            return []
        from depyf.report.read.reading import NothingToRead, load
        from depyf.report.render.summary import summary_lines
        from depyf.report.render.writing import where_ranks_differ, write_report

        try:
            runs = load([root])
        except synchronous(NothingToRead):
            return []
        page = write_report(runs, root)
        lines = [f"{len(runs)} process{'es' if len(runs) > 1 else ''} dumped into {root}"]
        lines += [f"  {each.name}: {next(iter(summary_lines(each.run)), '')}" for each in runs[:_MOST_NAMED]]
        if len(runs) > _MOST_NAMED:
            lines.append(f"  and {len(runs) - _MOST_NAMED} more")
        lines += [f"! {each['title']}" for each in where_ranks_differ(runs)]
        return [visible(line) for line in [*lines, f"{'the page':<24}{page}"]]
    except synchronous() as error:
        return [visible(f"no page of all processes: {error}: depyf report {root} makes one")]
