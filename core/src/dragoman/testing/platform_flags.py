"""Whether a platform does what a flag of `dragoman.Capabilities` promises, as people see it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

import anyio
import pytest

from dragoman.messages import Button, Kind, OutboundFile
from dragoman.testing.platform_harness import PlatformHarness
from dragoman.testing.platform_stage import Stage, staged

Works: TypeAlias = Callable[[Stage, Any], Awaitable[bool]]
_CONTENT: Final = b"dragoman" * 500


async def _answers(stage: Stage, platform: Any) -> bool:
    stage.need("press")
    dm = stage.harness.dm
    asked = stage.out("Sure?", buttons=(Button("Yes", "say:1"), Button("No", "say:2")))
    receipt = await platform.send(dm, asked)
    for label, data, text in (("Yes", "say:1", ""), ("No", "say:2", "Noted & done.")):
        await stage.harness.press(dm, receipt.native_id, label)
        await platform.answer(await stage.inbox.of(Kind.PRESS, data), text)
    told = [text for text in await stage.harness.answered(dm) if text]
    return told == ["Noted & done."] and await stage.texts(dm) == ["Sure?"]


async def _buttons(stage: Stage, platform: Any) -> bool:
    buttons = (Button("Yes", "say:1"), Button("No", "say:2", "danger"))
    await platform.send(stage.harness.dm, stage.out("Sure?", buttons=buttons))
    [seen] = await stage.harness.shown(stage.harness.dm)
    return seen.buttons == ("Yes", "No")


async def _delete(stage: Stage, platform: Any) -> bool:
    receipt = await platform.send(stage.harness.dm, stage.out("first"))
    await platform.delete(stage.harness.dm, receipt.native_id)
    return not await stage.harness.shown(stage.harness.dm)


async def _edit(stage: Stage, platform: Any) -> bool:
    receipt = await platform.send(stage.harness.dm, stage.out("first"))
    await platform.edit(stage.harness.dm, receipt.native_id, stage.out("second"))
    return await stage.texts(stage.harness.dm) == ["second"]


async def _fetch(stage: Stage, platform: Any) -> bool:
    stage.need("file")
    await stage.harness.say(stage.harness.dm, "look", file=("notes.txt", _CONTENT))
    event = await stage.inbox.heard("look")
    async with platform.fetch(event.attachments[0]) as pieces:
        return b"".join([piece async for piece in pieces]) == _CONTENT


async def _files(stage: Stage, platform: Any) -> bool:
    path = anyio.Path(stage.host.data_dir) / "report"
    await path.write_bytes(_CONTENT)
    file = OutboundFile(
        path=stage.host.data_dir / "report",
        name="report.txt",
        size=len(_CONTENT),
        mime="text/plain",
    )
    await platform.send(stage.harness.dm, stage.out("here", file=file))
    seen = await stage.harness.shown(stage.harness.dm)
    return [dict(one.files) for one in seen] == [{"report.txt": _CONTENT}]


async def _idempotent_send(stage: Stage, platform: Any) -> bool:
    message = stage.out("once")
    first = await platform.send(stage.harness.dm, message)
    second = await platform.send(stage.harness.dm, message)
    return first.native_id == second.native_id and await stage.texts(stage.harness.dm) == ["once"]


async def _look_up(stage: Stage, platform: Any) -> bool:
    message = stage.out("here")
    receipt = await platform.send(stage.harness.dm, message)
    assert await platform.look_up(stage.harness.dm, stage.out("never sent")) is None
    found = await platform.look_up(stage.harness.dm, message)
    return found is not None and found.native_id == receipt.native_id


async def _reactions(stage: Stage, platform: Any) -> bool:
    said = await stage.harness.say(stage.harness.dm, "news")
    await platform.react(stage.harness.dm, said, "👍", on=True)
    return bool(await stage.harness.reactions(stage.harness.dm, said))


async def _typing(stage: Stage, platform: Any) -> bool:
    where = stage.harness.dm if "thread" in stage.harness.cannot else stage.harness.thread
    await platform.typing(where)
    return await stage.harness.typings(where) > 0


FLAGS: Final[Mapping[str, Works]] = {
    "answers": _answers,
    "buttons": _buttons,
    "delete": _delete,
    "edit": _edit,
    "fetch": _fetch,
    "files": _files,
    "idempotent_send": _idempotent_send,
    "look_up": _look_up,
    "reactions": _reactions,
    "typing": _typing,
}


@pytest.mark.anyio
class FlagsSuite:
    """A part of `dragoman.testing.platform_suite`."""

    @pytest.mark.parametrize("flag", FLAGS)
    async def test_a_flag_is_said_exactly_where_there_is_behaviour(
        self, harness: PlatformHarness, flag: str
    ) -> None:
        """A flag without behaviour fails, and so does behaviour without a flag."""
        async with staged(harness) as stage, stage.live() as platform:
            if getattr(platform.capabilities, flag):
                assert await FLAGS[flag](stage, platform), f"{flag} is promised and not kept"
            else:
                try:
                    works = await FLAGS[flag](stage, platform)
                except Exception:  # noqa: BLE001 — what is not promised may fail in any way
                    works = False
                assert not works, f"{flag} works and is not said in the capabilities"
