"""Our messages in Discord's words. Pure."""

from __future__ import annotations

import base64
import hashlib
from typing import Any, Final

from dragoman import Button, Outbound
from dragoman_discord.fields import is_id

BUTTONS: Final = 25
_ROW: Final = 5
_STYLES: Final = {"": 2, "primary": 1, "danger": 4}
_NO_PREVIEWS: Final = 1 << 2
_ONE_PERSON: Final = 1 << 6


def nonce_of(delivery_id: str) -> str:
    """Return the key that makes a repeated send the same message: 25 characters, 150 bits."""
    digest = hashlib.sha256(delivery_id.encode()).digest()
    return base64.urlsafe_b64encode(digest).decode("ascii")[:25]


def body_of(message: Outbound, text: str, *, mentions: bool) -> dict[str, Any]:
    """Return what a message and its edit have in common. Its buttons are all that it has."""
    people = ["users"] if mentions else []
    return {
        "content": text,
        "allowed_mentions": {"parse": people, "replied_user": False},
        "flags": _NO_PREVIEWS,
        "components": _rows(message.buttons),
    }


def new_message(message: Outbound, text: str, *, mentions: bool, reply_to: str) -> dict[str, Any]:
    """Return the body of a new message; the one it replies to may be gone meanwhile."""
    body = {
        **body_of(message, text, mentions=mentions),
        "nonce": nonce_of(message.delivery_id),
        "enforce_nonce": True,
    }
    if is_id(reply_to):
        body["message_reference"] = {"message_id": reply_to, "fail_if_not_exists": False}
    return body


def whispered(text: str) -> dict[str, Any]:
    """Return the body of what one person sees."""
    nobody: dict[str, Any] = {"parse": []}
    return {"content": text, "allowed_mentions": nobody, "flags": _NO_PREVIEWS | _ONE_PERSON}


def _rows(buttons: tuple[Button, ...]) -> list[dict[str, Any]]:
    return [
        {"type": 1, "components": [_button(button) for button in buttons[at : at + _ROW]]}
        for at in range(0, min(len(buttons), BUTTONS), _ROW)
    ]


def _button(button: Button) -> dict[str, Any]:
    style = _STYLES.get(button.style, 2)
    return {"type": 2, "style": style, "label": button.label, "custom_id": button.data}
