"""Secrets: values that are read once, shown never, and taken out of logs."""

from __future__ import annotations

from typing import Final

import attrs


@attrs.frozen(repr=False, eq=False)
class Secret:
    """A value that came from the environment, a file or a systemd credential.

    ``origin`` says where from and is safe to show. The value leaves only through `reveal`.
    """

    origin: str
    _value: str

    def reveal(self) -> str:
        """Return the value. Callers hand it to the service it belongs to and keep no copy."""
        return self._value

    def __repr__(self) -> str:
        return f"Secret({self.origin})"


@attrs.define(eq=False)
class Redactor:
    """Takes the values of known secrets out of a text."""

    _values: set[str] = attrs.field(factory=set, repr=False)

    MINIMUM: Final = 6
    """Shorter values are left alone: they would tear up ordinary words."""

    def learn(self, secret: Secret) -> None:
        """Redact this secret from now on."""
        value = secret.reveal()
        if len(value) >= self.MINIMUM:
            self._values.add(value)

    def __call__(self, text: str) -> str:
        """Return ``text`` with each known secret replaced."""
        for value in self._values:
            if value in text:
                text = text.replace(value, "[secret]")
        return text
