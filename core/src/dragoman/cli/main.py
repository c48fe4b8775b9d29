"""The ``dragoman`` program: finds its command, and loads nothing else."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from typing import Final, Protocol, TypeAlias, cast

from dragoman.components import CliCommand
from dragoman.process.exits import end_quietly_on_signals

EXIT_CODES: Final = """\
exit codes:
  0   done, or ended in order when asked to
  1   failed
  2   the manifest, a plugin or the command line has problems; nothing was started
  70  the event loop was held too long, or the orderly end took too long
  75  not now: another process holds the store
  130 ended by Ctrl-C
  128+n  asked again to end, by signal n

plugins that dragoman.toml, or the manifest after -m, names may add commands
"""

COMMANDS: Final = {
    "init": "write a commented manifest",
    "check": "find every problem of a manifest, without starting anything",
    "run": "run the gateway",
    "chat": "talk to an agent in this terminal; needs no account",
    "route": "say which profile answers somewhere, and why",
    "send": "say something in a conversation, as the account of the deployment",
    "runs": "tell what became of messages, from receipt to confirmation",
    "deliveries": "list what was sent, and decide about what is in doubt",
    "approvals": "list tool calls that wait for a person, and decide about them",
    "grants": "list tools that need not ask any more, and let them ask again",
    "pair": "list codes that strangers were shown, and let people in or out",
    "people": "list accounts, say what they may, and which are one person's",
    "sessions": "list sessions, show what each has, and mend a history",
    "usage": "sum up what turns used of which models",
    "plugins": "list installed plugins",
    "schema": "print the manifest's JSON Schema, for editors",
}
"""Each is a module of this package with ``configure(parser)`` and ``run(args)``."""


class CommandModule(Protocol):
    """What a command's module offers."""

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the command's arguments."""
        ...

    def run(self, args: argparse.Namespace) -> int:
        """Do it; return the exit code."""
        ...


Command: TypeAlias = CommandModule | CliCommand


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the entry point of the program."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    name = next((word for word in arguments if not word.startswith("-")), "")
    if name == "run":
        end_quietly_on_signals()
    command = _find(name, arguments)
    parser = _parser(name, command)
    args = parser.parse_args(arguments)
    if command is None:
        parser.print_help()
        return 0
    try:
        return command.run(args)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read our output has gone; there is nobody to tell.
        sys.stderr.close()
        return 1


def _find(name: str, arguments: Sequence[str]) -> Command | None:
    """Return the wanted command; nothing but it is imported."""
    if name in COMMANDS:
        return cast("Command", importlib.import_module(f"dragoman.cli.{name}"))
    if not name:
        return None
    from dragoman.cli.plugin_commands import find_command

    return find_command(name, arguments)


def _parser(wanted: str, command: Command | None) -> argparse.ArgumentParser:
    """Build the parser; only the wanted command has its arguments."""
    parser = argparse.ArgumentParser(
        prog="dragoman",
        description="Chat platforms as the I/O layer of LLM agents.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("-V", "--version", action=_Version)
    commands = parser.add_subparsers(metavar="command", title="commands")
    known = dict(COMMANDS)
    if isinstance(command, CliCommand):
        known[command.name] = command.help
    for name, text in known.items():
        one = commands.add_parser(name, help=text, description=text)
        if command is not None and name == wanted:
            command.configure(one)
    return parser


class _Version(argparse.Action):
    """Prints the installed version; looked up only when asked for."""

    def __init__(self, option_strings: Sequence[str], dest: str) -> None:
        super().__init__(option_strings, dest, nargs=0, help="print the version")

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib_metadata import version

        print(f"dragoman {version('dragoman')}")
        parser.exit()


if __name__ == "__main__":
    raise SystemExit(main())
