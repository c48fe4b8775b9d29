"""Which releases of the SDK and its program are installed, and whether they were tested here.

Each release of the SDK brings another program, which behaves in its own way.
"""

from __future__ import annotations

import re
from typing import Final

from claude_agent_sdk import __version__ as sdk_version
from claude_agent_sdk._cli_version import __cli_version__ as program_version

from dragoman import Finding

TESTED: Final = ("0.2.189", "2.1.332")
"""The SDK and the program on which everything here was tested."""
_LEAST: Final = (2, 1, 248)
"""Before it people's words were commands to the program, and named files that it read."""
_NUMBERS: Final = re.compile(r"(\d+)\.(\d+)\.(\d+)")


def why_not(version: object) -> str | None:
    """Return why a program of this version cannot be used; ``None`` if it can."""
    found = _NUMBERS.match(str(version))
    if found is not None and tuple(map(int, found.groups())) >= _LEAST:
        return None
    least = ".".join(map(str, _LEAST))
    return f"the program is older than {least}, or does not say how old it is"


def refusal() -> str | None:
    """Return why the program that is installed cannot be used, with what helps."""
    why = why_not(program_version)
    return why and f"{why}; pip install claude-agent-sdk=={TESTED[0]}"


def finding() -> Finding:
    """Say what is installed, and whether it is what was tested."""
    installed = f"claude-agent-sdk {sdk_version} with program {program_version}"
    if (sdk_version, program_version) == TESTED:
        return Finding("ok", installed)
    text = f"{installed} was not tested; {TESTED[0]} with {TESTED[1]} was"
    return Finding("warning", text, f"pip install claude-agent-sdk=={TESTED[0]}")
