"""The fields of a form: which there may be, of which type, how long."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from peers.discord_fake.errors import Json, invalid

_MESSAGE: Final = "content tts embeds allowed_mentions components attachments flags"
FIELDS: Final[Mapping[str, frozenset[str]]] = {
    name: frozenset(f"{_MESSAGE} {more}".split())
    for name, more in {
        "create": "nonce enforce_nonce message_reference sticker_ids poll shared_client_theme",
        "edit": "",
        "post": "sticker_ids",
        "callback": "poll",
        "follow_up": "poll username avatar_url thread_name applied_tags",
        "edit_response": "poll",
    }.items()
}
"""R3: what each way of writing a message knows. ``tts`` of edits and posts is passed over."""
PARTS: Final[Mapping[str, frozenset[str]]] = {
    "attachment": frozenset(
        "id filename title description duration_secs waveform is_remix is_spoiler content_type size "
        "url proxy_url height width ephemeral flags placeholder placeholder_version".split()
    ),
    "allowed_mentions": frozenset("parse roles users replied_user".split()),
    "message_reference": frozenset(
        "type message_id channel_id guild_id fail_if_not_exists forward_only".split()
    ),
    "embed": frozenset(
        "title type description url timestamp color footer image thumbnail video provider author "
        "fields flags".split()
    ),
}
LONGEST: Final = 2000
_EMBED: Final[Mapping[str, int]] = {"title": 256, "description": 4096}
_EMBED_TOTAL: Final = 6000


def known(data: Mapping[str, Any], fields: Collection[str], path: str = "") -> None:
    """R3: refuse fields that the reference does not name."""
    for name in data:
        if name not in fields:
            raise invalid(_join(path, name), "UNKNOWN_FIELD", f'Unknown field "{name}".')


def text(value: Any, path: str, longest: int, *, shortest: int = 0) -> str:
    """E2: return a text whose length, in code points, is in bounds."""
    if not isinstance(value, str):
        raise invalid(path, "BASE_TYPE_STRING", "Must be a string.")
    if len(value) > longest and not shortest:
        raise invalid(path, "BASE_TYPE_MAX_LENGTH", f"Must be {longest} or fewer in length.")
    if not shortest <= len(value) <= longest:
        words = f"Must be between {shortest} and {longest} in length."
        raise invalid(path, "BASE_TYPE_BAD_LENGTH", words)
    return value


def flag(value: Any, path: str) -> bool:
    if not isinstance(value, bool):
        raise invalid(path, "BASE_TYPE_BOOLEAN", "Must be a boolean.")
    return value


def number(value: Any, path: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise invalid(path, "NUMBER_TYPE_COERCE", f'Value "{value}" is not int.')
    return value


def table(value: Any, path: str) -> Json:
    if not isinstance(value, dict):
        raise invalid(path, "MODEL_TYPE_CONVERT", "Only dictionaries may be used in a ModelType")
    return value


def many(value: Any, path: str, most: int) -> list[Any]:
    """E2: return a list, at most so long."""
    if not isinstance(value, list):
        raise invalid(path, "LIST_TYPE_CONVERT", "Only iterables may be used in a ListType")
    if len(value) > most:
        raise invalid(path, "BASE_TYPE_MAX_LENGTH", f"Must be {most} or fewer in length.")
    return value


def one_of(value: Any, path: str, choices: Collection[Any]) -> Any:
    if value not in choices:
        listed = ", ".join(str(choice) for choice in sorted(choices))
        raise invalid(path, "BASE_TYPE_CHOICES", f"Value must be one of ({listed}).")
    return value


def embeds(value: Any, path: str = "embeds") -> list[Json]:
    """R4: return embeds within their limits, with the type that Discord gives them."""
    found, total = [], 0
    for index, item in enumerate(many(value, path, 10)):
        place = f"{path}.{index}"
        embed = table(item, place)
        known(embed, PARTS["embed"], place)
        for name, longest in _EMBED.items():
            total += len(text(embed.get(name) or "", f"{place}.{name}", longest))
        total += len(
            text((embed.get("footer") or {}).get("text", ""), f"{place}.footer.text", 2048)
        )
        total += len(text((embed.get("author") or {}).get("name", ""), f"{place}.author.name", 256))
        total += _embed_fields(embed.get("fields") or [], f"{place}.fields")
        found.append({"type": "rich", **embed})
    if total > _EMBED_TOTAL:
        words = f"Embed size exceeds maximum size of {_EMBED_TOTAL}"
        raise invalid(path, "MAX_EMBED_SIZE_EXCEEDED", words)
    return found


def _embed_fields(value: Any, path: str) -> int:
    total = 0
    for index, field in enumerate(many(value, path, 25)):
        for name, longest in (("name", 256), ("value", 1024)):
            total += len(text(field.get(name), f"{path}.{index}.{name}", longest, shortest=1))
    return total


def poll(value: Any) -> Json:
    """R5: return a poll as it was asked for, checked."""
    asked = table(value, "poll")
    known(asked, {"question", "answers", "duration", "allow_multiselect", "layout_type"}, "poll")
    question = table(asked.get("question"), "poll.question")
    text(question.get("text"), "poll.question.text", 300, shortest=1)
    answers = many(asked.get("answers"), "poll.answers", 10)
    if not answers:
        raise invalid("poll.answers", "BASE_TYPE_REQUIRED", "This field is required")
    for index, answer in enumerate(answers):
        path = f"poll.answers.{index}.poll_media.text"
        text(answer.get("poll_media", {}).get("text"), path, 55, shortest=1)
    return asked


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
