"""Buttons as Telegram has them: rows below a message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dragoman import Button

MOST: Final = 100
"""Buttons of one message."""
_ROW: Final = 3
_WIDTH: Final = 30
"""Characters of all labels in one row, beyond which a phone cuts them off."""


def keyboard(buttons: Sequence[Button]) -> dict[str, object]:
    """Return the parameter for a message's buttons; none where there are none."""
    rows: list[list[Button]] = []
    for button in buttons:
        if rows and len(rows[-1]) < _ROW and _width(rows[-1]) + len(button.label) <= _WIDTH:
            rows[-1].append(button)
        else:
            rows.append([button])
    shown = [[_button(button) for button in row] for row in rows]
    return {"reply_markup": {"inline_keyboard": shown}} if shown else {}


def _width(row: Sequence[Button]) -> int:
    return sum(len(button.label) for button in row)


def _button(button: Button) -> dict[str, str]:
    style = {"style": button.style} if button.style else {}
    return {"text": button.label, "callback_data": button.data, **style}
