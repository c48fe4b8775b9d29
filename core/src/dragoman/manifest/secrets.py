"""Reading secrets: from the environment, a file or a systemd credential, never from the manifest.

No message of this module holds a secret's value, nor anything that an operator may have pasted
in place of a name. Nothing is expanded: not in the manifest, not in a value that was read.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import attrs

from dragoman.manifest.problems import UnusableError
from dragoman.secret import Secret

LITERAL: Final = (
    'write secrets as { env = "NAME" }, { file = "path" } or { credential = "name" }, '
    "not as a literal"
)
SOURCES: Final = {
    "env": "name of an environment variable",
    "file": "path of a file",
    "credential": "name of a systemd credential",
}

_ENV_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SHOWN_ENV_NAME: Final = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
"""What can only be a variable's name. A pasted key may be a legal name too: it is not shown."""

_CREDENTIAL_NAME: Final = re.compile(r"[A-Za-z0-9_@.-]*[A-Za-z0-9_@-][A-Za-z0-9_@.-]*")
_LARGEST: Final = 64 * 1024


@attrs.define(eq=False)
class SecretReader:
    """Reads the secrets of one manifest and remembers them, so that they can be redacted.

    ``base`` is the manifest's directory; relative files start there.
    """

    base: Path
    environ: Mapping[str, str] = attrs.field(repr=False)
    secrets: list[Secret] = attrs.field(factory=list)
    exposed: list[Secret] = attrs.field(factory=list)
    """Those whose file other users of the machine can read."""

    def read(self, source: object) -> Secret:
        """Return the secret that ``source`` names, or raise `UnusableError`."""
        if not isinstance(source, dict):
            raise UnusableError(LITERAL)
        kind, name = _only_source(source)
        read = {"env": self._environment, "file": self._file, "credential": self._credential}
        secret = read[kind](name)
        self.secrets.append(secret)
        return secret

    def _environment(self, name: str) -> Secret:
        if not _ENV_NAME.fullmatch(name):
            raise UnusableError("env takes the name of an environment variable")
        what = f"environment variable {name if _SHOWN_ENV_NAME.fullmatch(name) else '(named here)'}"
        if name not in self.environ:
            raise UnusableError(f"{what} is not set")
        return Secret(f"env:{name}", _cleaned(self.environ[name], what))

    def _file(self, name: str) -> Secret:
        path = self.base / name
        value, mode = _contents(path, "the file")
        secret = Secret(f"file:{path}", _cleaned(value, "the file"))
        if mode & (stat.S_IRGRP | stat.S_IROTH):
            self.exposed.append(secret)
        return secret

    def _credential(self, name: str) -> Secret:
        if not _CREDENTIAL_NAME.fullmatch(name):
            raise UnusableError("credential takes the name of a systemd credential, not a path")
        directory = self.environ.get("CREDENTIALS_DIRECTORY")
        if not directory:
            raise UnusableError(
                "no credentials were passed to this process ($CREDENTIALS_DIRECTORY is not set); "
                "add LoadCredential= to the unit, or read the secret from env or file"
            )
        value, _ = _contents(Path(directory) / name, "the credential")
        return Secret(f"credential:{name}", _cleaned(value, "the credential"))


def _only_source(source: dict[str, object]) -> tuple[str, str]:
    if not source.keys() <= SOURCES.keys():
        raise UnusableError("a secret has exactly one of env, file, credential and nothing else")
    if len(source) != 1:
        raise UnusableError("name exactly one source: env, file or credential")
    ((kind, name),) = source.items()
    if not isinstance(name, str) or not name.strip():
        raise UnusableError(f"{kind} takes a name, as a string that is not empty")
    return kind, name.strip()


def _contents(path: Path, what: str) -> tuple[str, int]:
    """Return a file's text and its mode. Only regular files: a pipe could wait for ever."""
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            raise UnusableError(f"{what} is not a regular file")
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except FileNotFoundError:
        raise UnusableError(
            f"{what} does not exist (relative paths start at the manifest's directory)"
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a path"
        raise UnusableError(f"{what} cannot be read: {reason}") from None
    if len(data) > _LARGEST:
        raise UnusableError(f"{what} is larger than 64 KiB: that is no secret")
    try:
        return data.decode(), mode
    except UnicodeDecodeError:
        raise UnusableError(f"{what} is not UTF-8 text") from None


def _cleaned(value: str, what: str) -> str:
    """Return ``value`` without surrounding white space; raise for what was surely not meant."""
    text = value.strip()
    wrong = (
        (value.startswith("\ufeff"), "begins with a byte order mark; save it without one"),
        (not text, "is empty"),
        ({text[:1], text[-1:]} & {'"', "'"}, "has quotes around its value; take them out"),
        ("${" in text, 'holds "${": nothing is expanded; write the value itself'),
        (len(text.split()) > 1, "has white space inside: was more than the secret pasted?"),
        (not text.isprintable(), "holds a character that cannot be printed"),
    )
    for is_so, reason in wrong:
        if is_so:
            raise UnusableError(f"{what} {reason}")
    return text
