"""What the chats show in the end, judged: pure, and knowing nothing of how the gateway works."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

import attrs

PREFIX: Final = "echo: "
NOTICE: Final = "(a restart interrupted this"
CUT: Final = "(interrupted by a restart)"
REPEAT: Final = "(this may be a repeat)"
EMPTY: Final = frozenset({"…", "⁂"})
"""What a part shows that holds no text: before the first, or after it moved."""


@attrs.frozen
class Lane:
    """One conversation: a private chat, or one topic of a forum."""

    chat: int
    user: int
    thread: int | None = None


Answer: TypeAlias = tuple[Lane, str]


@attrs.frozen
class Judgement:
    """What is wrong on the screens, and what is odd there but may have its reasons."""

    lost: tuple[str, ...] = ()
    doubled: tuple[str, ...] = ()
    disordered: tuple[str, ...] = ()
    strange: tuple[str, ...] = ()
    """Texts that answer nothing, half answers included."""
    notices: int = 0
    marked: Counter[Answer] = attrs.field(factory=Counter)
    """Answers that say that they may be repeats."""
    twice: int = 0
    """Those of them beside which the answer is shown without the mark."""
    placeholders: Counter[Lane] = attrs.field(factory=Counter)
    """Messages that show nothing but a placeholder."""

    @property
    def sound(self) -> bool:
        """Whether every message is answered once, in order, and nothing else is shown."""
        return not (self.lost or self.doubled or self.disordered or self.strange)


@attrs.define
class _Count:
    shown: Counter[str] = attrs.field(factory=Counter)
    marked: Counter[str] = attrs.field(factory=Counter)
    order: list[str] = attrs.field(factory=list)


def without_mark(text: str) -> str:
    """Return a text without the mark of a repeat."""
    return text.removeprefix(REPEAT).strip()


def judge(
    said: Mapping[Lane, Sequence[str]], shown: Mapping[Lane, Sequence[tuple[int, str]]]
) -> Judgement:
    """Compare what was said with what each lane shows: numbers and texts of its messages."""
    verdict: dict[str, list[str]] = {"lost": [], "doubled": [], "disordered": [], "strange": []}
    placeholders: Counter[Lane] = Counter()
    marked: Counter[Answer] = Counter()
    notices = twice = 0
    for lane, texts in said.items():
        wanted = {PREFIX + text: place for place, text in enumerate(texts)}
        count = _Count()
        for _, text in sorted(shown.get(lane, ())):
            answer = without_mark(text)
            if answer in EMPTY:
                placeholders[lane] += 1
            elif NOTICE in answer:
                notices += 1
            elif answer not in wanted:
                verdict["strange"].append(f"{lane.chat}/{lane.thread}: {text[:60]!r}")
            else:
                (count.shown if answer == text else count.marked)[answer] += 1
                count.order.append(answer)
        marked.update({(lane, answer): number for answer, number in count.marked.items()})
        twice += sum(1 for answer in count.marked if answer in count.shown)
        for answer, place in wanted.items():
            name = f"{lane.chat}/{lane.thread} {place}"
            if not count.shown[answer] + count.marked[answer]:
                verdict["lost"].append(name)
            if count.shown[answer] > 1:
                verdict["doubled"].append(f"{name}: {count.shown[answer]} times")
        places = [wanted[answer] for answer in count.order]
        if places != sorted(places):
            verdict["disordered"].append(f"{lane.chat}/{lane.thread}: {places}")
    return Judgement(
        **{name: tuple(found) for name, found in verdict.items()},
        notices=notices,
        marked=marked,
        twice=twice,
        placeholders=placeholders,
    )
