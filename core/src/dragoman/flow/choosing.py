"""Choosing a profile or a model in a chat, and what of it counts: only what the manifest offers."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from functools import partial
from typing import Final

import attrs

from dragoman.flow.admission import Admission
from dragoman.flow.choices import MODEL, PROFILE, Choices, place_of
from dragoman.flow.commands import BUSY, NOT_YOURS
from dragoman.flow.registry import Given, Run
from dragoman.flow.routing import Routed, Router
from dragoman.messages import Address, Inbound, Place
from dragoman.roles import Role
from dragoman.store.protocol import Store

DEFAULT: Final = "default"
"""What takes a chosen model back."""
OWN_MODEL: Final = "the profile's own model"


@attrs.define(eq=False)
class Choosing:
    """What people choose, within what routes and profiles offer them."""

    _store: Store
    _log: logging.Logger
    _router: Router
    _choices: Choices

    async def load(self) -> None:
        """Read what was chosen before; models that no profile offers any more are forgotten."""
        await self._choices.load()
        for name in await self._choices.stale(self._counts):
            self._log.warning("a chosen model is not offered any more: %s", name)

    def _counts(self, name: str, value: str) -> bool:
        """Whether a choice can still count. Which profiles a place is offered, its route will say."""
        _, _, _, _, what, *of = json.loads(name)
        found = self._router.profiles.get(of[0]) if of else None
        return what != MODEL or value == "" or (found is not None and value in found.models)

    async def routed(self, event: Inbound, routed: Routed) -> Routed:
        """Return how an event is routed with what was chosen where it was said.

        A choice that the place's own route does not offer any more is forgotten.
        """
        chosen = self._choices.of(event.address, PROFILE)
        if chosen is None or chosen == routed.name:
            return routed
        if chosen in routed.offered:
            return self._router.of_name(chosen, routed)
        personal = routed.route is not None and routed.route.user is not None
        if self._choices.own(event.address, PROFILE) == chosen and not personal:
            where = ":".join(event.address.lane)
            self._log.warning("profile %s, chosen in %s, is not offered there now", chosen, where)
            await self._choices.forget(event.address, PROFILE)
        return routed

    def model(self, address: Address, profile: str) -> str:
        """Return the model that was chosen for a session of a profile; empty for the runtime's."""
        found = self._router.profiles.get(profile)
        place = place_of(address, found.scope) if found else address
        return self._choices.of(place, MODEL, profile) or ""

    def runs(self, admission: Admission) -> dict[str, Run]:
        """Return what carries out the commands, by their names."""
        return {"model": self._model, "profile": partial(self._profile, admission)}

    async def _profile(self, admission: Admission, given: Given) -> str:
        routed, event, name = given.routed, given.event, given.call.arguments
        offered = [each for each in routed.offered if await self._may(admission, given, each)]
        if not name:
            return f"Profiles here: {_listed(offered)}. In use: `{routed.name}`."
        if not _decides(given):
            return NOT_YOURS
        if name not in offered:
            return f"There is no such profile here. You can choose among {_listed(offered)}."
        if name == routed.name:
            return f"`{name}` answers here already."
        read = self._store.read
        if await read.busy(event.address) or await read.running(given.session_id):
            return BUSY
        await self._choices.choose(event.address, name, routed.offered[0], PROFILE)
        return (
            f"From now on `{name}` answers here. What was said before stays with `{routed.name}`."
        )

    async def _may(self, admission: Admission, given: Given, name: str) -> bool:
        """Whether a profile would let in who chooses it: nobody shuts himself out."""
        routed = self._router.of_name(name, given.routed)
        return (await admission.decide(given.event, routed)).allowed

    async def _model(self, given: Given) -> str:
        routed, name = given.routed, given.call.arguments
        models, place = routed.profile.models, place_of(given.event.address, routed.profile.scope)
        if not models:
            return "There is no choice of models here."
        if not name:
            used = self.model(place, routed.name)
            return f"Models here: {_listed(models)}. In use: {f'`{used}`' if used else OWN_MODEL}."
        if not _decides(given):
            return NOT_YOURS
        if name not in (*models, DEFAULT):
            return (
                f"There is no such model here. You can choose among {_listed((*models, DEFAULT))}."
            )
        value = "" if name == DEFAULT else name
        await self._choices.choose(place, value, "", MODEL, routed.name)
        shown = f"`{value}`" if value else OWN_MODEL
        return f"From the next message on {shown} answers here."


def _decides(given: Given) -> bool:
    """Whether somebody may choose for all who talk there: in groups that is an operator's."""
    return given.event.address.place is Place.DM or given.role.includes(Role.OPERATOR)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
