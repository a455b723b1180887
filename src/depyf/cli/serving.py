"""``depyf mcp``: questions to dumps for coding agents, by the Model Context Protocol (https://modelcontextprotocol.io).

A module of its own, because it alone knows the package of the protocol.
"""

from __future__ import annotations

import argparse
import functools
import os
from typing import TYPE_CHECKING, Type

from depyf import __version__
from depyf.base.messages import error_line
from depyf.base.visible import visible
from depyf.running.agent_tools import Data, DumpTools, ProgramTools, Tool, ToolError

if TYPE_CHECKING:
    from mcp.server import MCPServer

_INSTRUCTIONS = (
    "depyf shows what torch.compile did with a program, from a dump directory. Begin with `overview`: it has the "
    "findings with file, line and advice. Ask `why` about a compile id, `line` about a source line, `artifact` for any "
    "text. `depyf docs agents` says how to go on."
)


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``mcp`` to the subparsers of the command line."""
    parser = commands.add_parser(
        "mcp",
        help="answer a coding agent's questions about dumps (Model Context Protocol)",
        description="Serves the Model Context Protocol on standard input and output, for a coding agent that starts "
        "it: tools that read dumps and TORCH_TRACE logs below DIR. Nothing is run and nothing is written, unless --run "
        "is given: then the agent can run programs below DIR, compare them with eager mode, and run graphs of a dump. "
        "No port is opened. `depyf docs agents` has instructions for an agent. It needs `pip install depyf[mcp]`. Exit "
        "status 0 when the agent closes the input, 2 when it can't begin.",
    )
    parser.set_defaults(run=_serve)
    parser.add_argument("directory", metavar="DIR", nargs="?", default=".", help="what may be read (this directory)")
    parser.add_argument("--run", action="store_true", dest="programs", help="let the agent run programs below DIR")


def _serve(options: argparse.Namespace) -> int:
    if not os.path.isdir(options.directory):
        error_line(visible(f"depyf: {options.directory} is no directory"))
        return 2
    try:
        server = make_server(options.directory, programs=options.programs)
    except ImportError as error:
        error_line(f"depyf mcp needs the package mcp, version 2, and Python 3.10: pip install 'depyf[mcp]' ({error})")
        return 2
    server.run("stdio")
    return 0


def make_server(directory: str, *, programs: bool) -> MCPServer:
    """Return the server with its tools for the dumps below ``directory``; with ``programs`` the agent can run programs
    there. Raises ``ImportError`` without the package."""
    from mcp.server import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError as ProtocolError

    dumps = DumpTools(directory)
    server = MCPServer("depyf", instructions=_INSTRUCTIONS, version=__version__)
    for tool in (*dumps.tools(), *(ProgramTools(dumps).tools() if programs else ())):
        server.add_tool(_as_tool(tool, ProtocolError))
    return server


def _as_tool(tool: Tool, error_of_protocol: Type[Exception]) -> Tool:
    """Return a tool whose own errors reach the agent with their text; of any other error it learns only that there was
    one."""

    @functools.wraps(tool)
    def answered(*args: object, **kwargs: object) -> Data:
        try:
            return {name: _encodable(value) for name, value in tool(*args, **kwargs).items()}
        except ToolError as error:
            raise error_of_protocol(str(_encodable(str(error)))) from error

    return answered


def _encodable(value: object) -> object:
    """Return plain data with escapes for the surrogates that stand for undecodable bytes in the names of files: the
    protocol is in UTF-8."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, (list, tuple)):
        return [_encodable(each) for each in value]
    if isinstance(value, dict):
        return {str(_encodable(name)): _encodable(each) for name, each in value.items()}
    return value
