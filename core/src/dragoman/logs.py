"""Logging: records of one application, with every known secret taken out."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Final, TypeAlias

from dragoman.secret import Redactor

CONTEXT: Final = ("event", "delivery", "turn", "session", "conversation", "platform")
"""The fields that records may carry in ``extra``; they become fields of a JSON line."""


Log: TypeAlias = logging.Logger | logging.LoggerAdapter[logging.Logger]


class RedactingFilter(logging.Filter):
    """Takes secrets out of a record's message, arguments and traceback."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrite the record in place, and keep it."""
        try:
            message = record.getMessage()
        except (TypeError, ValueError, KeyError):
            message = f"{record.msg} (its arguments do not fit)"
        record.msg = self._redactor(message)
        record.args = ()
        if record.exc_info:
            text = logging.Formatter().formatException(record.exc_info)
            record.exc_text = self._redactor(text)
        return True


class JsonFormatter(logging.Formatter):
    """One record as one line of JSON; times are UTC."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: getattr(record, name) for name in CONTEXT if hasattr(record, name)}
        if record.exc_text:
            line["traceback"] = record.exc_text
        return json.dumps(line)


def bound(log: logging.Logger, **ids: str) -> Log:
    """Return a logger whose records all carry these fields, which `CONTEXT` names."""
    return logging.LoggerAdapter(log, ids)


def logger(name: str, redactor: Redactor) -> logging.Logger:
    """Return a logger of one application: its secrets are no concern of other applications.

    It is not registered anywhere; its records go the way of the ``dragoman`` logger's.
    """
    log = logging.Logger(f"dragoman.{name}")  # noqa: LOG001 - on purpose, see above
    log.parent = logging.getLogger("dragoman")
    log.addFilter(RedactingFilter(redactor))
    return log


def configure(redactor: Redactor, *, level: str, as_json: bool) -> None:
    """Send the process's log to standard error. HTTP clients log at warning: they name URLs."""
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(RedactingFilter(redactor))
    handler.setFormatter(
        JsonFormatter()
        if as_json
        else logging.Formatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s")
    )
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for name in ("httpx", "httpx2", "httpcore", "httpcore2", "openai", "aiosqlite"):
        logging.getLogger(name).setLevel(logging.WARNING)
