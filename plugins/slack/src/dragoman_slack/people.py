"""Names of people, which events do not tell: asked for once, and only for so long."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import attrs

from dragoman import Clock, PlatformError
from dragoman_slack.api import WebApi
from dragoman_slack.failures import Failed, Unavailable
from dragoman_slack.fields import Json, as_map, as_text, one_line

_KEPT: Final = 2048
_AT_ONCE: Final = 8
PATIENCE: Final = 1.0
"""Seconds that names may take for one event: Slack waits three for its acknowledgement."""
RENEWED: Final = 6 * 3600.0
SOON: Final = 60.0
"""Seconds after which a name is asked for again that could not be had."""


@attrs.define(eq=False)
class People:
    """Names by user id. They are labels only; a person without one is shown by the id."""

    _api: WebApi
    _clock: Clock
    _names: dict[str, tuple[str, float]] = attrs.field(factory=dict)
    _refused: bool = False
    """Whether the app may not ask."""

    async def names(self, ids: Iterable[str]) -> Mapping[str, str]:
        """Return the names that are known of some people, after asking for those that are not."""
        now = self._clock.boot()
        wanted = list(ids)[:_AT_ONCE]
        missing = [
            one for one in wanted if now - self._names.get(one, ("", -RENEWED))[1] >= RENEWED
        ]
        if missing and not self._refused:
            with self._clock.move_on_after(PATIENCE):
                for one in missing:
                    await self._ask(one)
        return {one: self._names[one][0] for one in wanted if self._names.get(one, ("", 0.0))[0]}

    async def _ask(self, user: str) -> None:
        now = self._clock.boot()
        answer: Json = {}
        try:
            answer = await self._api.call("users.info", user=user)
        except Unavailable:
            self._refused = True
            return
        except Failed:
            pass  # nobody that this app may know of
        except PlatformError:
            now -= RENEWED - SOON
        found = as_map(answer.get("user"))
        profile = as_map(found.get("profile"))
        names = (profile.get("display_name"), profile.get("real_name"), found.get("name"))
        name = next(filter(None, map(as_text, names)), "")
        self._names.pop(user, None)
        self._names[user] = (one_line(name), now)
        if len(self._names) > _KEPT:
            del self._names[next(iter(self._names))]
