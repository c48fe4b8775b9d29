"""Judges a trial by what people see: pure, and knowing nothing of how the gateway works."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

import attrs

from crash.scene import Said, Seen

REPEAT: Final = re.compile(r"\(this may be a repeat\)")
_STEP: Final = r"\(`[^()]*…\)\s*"
"""What ran last, which may stand above the word of an interruption, and before all text as well."""
CUT: Final = re.compile(rf"(?:{_STEP})?\(interrupted by a restart\)")
NOTICE: Final = re.compile(
    r"\(a restart interrupted this before there was an answer[^)]*\)"
    rf"|^{_STEP}\(interrupted by a restart\)$"
)


@attrs.frozen
class Judgement:
    """Which messages got too little, which too much, and what was left lying around."""

    lost: tuple[str, ...] = ()
    doubled: tuple[str, ...] = ()
    marked: tuple[str, ...] = ()
    stray: tuple[str, ...] = ()
    interrupted: int = 0
    """Messages that got a visible word of the interruption in place of their whole answer."""


@attrs.define
class _Showing:
    """What is shown for one message."""

    said: Said
    whole: int = 0
    cut: int = 0
    marked: int = 0
    files: int = 0
    marked_files: int = 0


def judge(said: Sequence[Said], visible: Sequence[Seen]) -> Judgement:
    """Compare what was said with what all chats show in the end."""
    showings = [_Showing(one) for one in said]
    notices: Counter[str] = Counter()
    marked_notices: Counter[str] = Counter()
    stray: list[str] = []
    marked: list[str] = []
    for seen in visible:
        text = plain(seen.text)
        body, repeat = _without(REPEAT, text)
        if repeat:
            marked.append(text)
        body, notice = _without(NOTICE, body)
        if notice and not body:
            (marked_notices if repeat else notices)[seen.chat] += 1
        elif not _attribute(showings, seen.chat, body, repeat=repeat):
            stray.append(f"{seen.chat}: {text[:60]!r}")
    lost, doubled, noticed = _weigh(showings, notices, marked_notices)
    return Judgement(
        lost=tuple(lost),
        doubled=tuple(doubled),
        marked=tuple(marked),
        stray=tuple(stray),
        interrupted=noticed + sum(1 for one in showings if one.cut and not one.whole),
    )


def _attribute(showings: Sequence[_Showing], chat: str, body: str, *, repeat: bool) -> bool:
    """Count a shown text for the message that it answers; return whether there is one."""
    body, cut = _without(CUT, body)
    for showing in showings:
        if body and (showing.said.chat, showing.said.file) == (chat, body):
            showing.marked_files += repeat
            showing.files += not repeat
            return True
        answer = showing.said.answer
        if showing.said.chat != chat or not body or not answer.startswith(body):
            continue
        if not cut and body != answer:
            continue
        if repeat:
            showing.marked += 1
        elif cut:
            showing.cut += 1
        else:
            showing.whole += 1
        return True
    return False


def _weigh(
    showings: Sequence[_Showing], notices: Counter[str], marked_notices: Counter[str]
) -> tuple[list[str], list[str], int]:
    """Return what is lost, what is doubled, and how many messages a notice stands for."""
    lost: list[str] = []
    doubled: list[str] = []
    noticed = 0
    for one in showings:
        name = f"{one.said.chat}: {one.said.text[:24]!r}"
        if one.whole + one.cut > 1:
            doubled.append(f"{name} is answered {one.whole} times whole and {one.cut} times cut")
        if one.files > 1:
            doubled.append(f"{name} has its file {one.files} times")
        if one.whole + one.marked and one.said.file and not one.files + one.marked_files:
            lost.append(f"{name}: its file")
        if one.whole + one.cut + one.marked:
            continue
        for pool in (notices, marked_notices):
            if pool[one.said.chat]:
                pool[one.said.chat] -= 1
                noticed += 1
                break
        else:
            lost.append(name)
    doubled += [f"{chat}: a notice too many" for chat in notices.elements()]
    return lost, doubled, noticed


def plain(text: str) -> str:
    """Return a text as people read it: without the signs of emphasis around marks."""
    return text.replace("*", "").replace("_", "").strip()


def _without(pattern: re.Pattern[str], text: str) -> tuple[str, bool]:
    body, count = pattern.subn("", text)
    return body.strip(), count > 0
