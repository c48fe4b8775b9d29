"""Who may: one function for everything that comes in. Nobody may unless a rule says so."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import attrs

from dragoman.flow.people import People, joined
from dragoman.flow.routing import Routed
from dragoman.hookspecs import ConversationView, Verdict
from dragoman.manifest.model import Access
from dragoman.messages import Address, Inbound
from dragoman.plugins.hooktable import HookTable
from dragoman.roles import Role

NOBODY: Final = "not on any list"
"""Why a stranger is not let in."""


@attrs.frozen
class Admitted:
    """What was decided about an event, and the rule that did. Who is not allowed has no role."""

    allowed: bool
    reason: str
    role: Role = Role.USER


@attrs.frozen
class Admission:
    """The access rules of the manifest, who was paired, and the plugins that may add to them.

    People are written ``kind:id``, with the workspace between where their ids belong to one. The
    list of channels may name a channel, a thread, what holds the channel (a category) or the whole
    workspace, each also with its workspace. A thread is named behind its channel; alone only where
    there are workspaces: elsewhere its id may be the number of any message.
    """

    _people: People
    _access: Access
    _kinds: Mapping[str, str]
    """The kind of each platform instance: the plugin it is made of."""
    _hooks: HookTable
    _names: Callable[[Address], Sequence[str]]
    """All ids of a channel: those that it had before it moved, too."""

    async def decide(self, event: Inbound, routed: Routed | None = None) -> Admitted:
        """Return the recorded decision; asked before routing, and after it with the profile.

        Every plugin is asked even where a list of the manifest allows: each may refuse. After
        routing the profile's own rule counts, too.
        """
        platform = event.address.platform
        kind, name = self._kinds[platform], routed.name if routed else ""
        view = ConversationView(platform, kind, name, (name,) if routed else ())
        said = await self._hooks.admit(event, view)
        if said is not None and not said.allowed:
            return Admitted(False, said.reason)
        found = self._listed(event, kind) or _of_plugin(said)
        if found.allowed and routed and not self._in_profile(event, found.role, routed):
            return Admitted(False, f"not among those whom profile {name} allows")
        return found

    def _listed(self, event: Inbound, kind: str) -> Admitted | None:
        """Return what the first list says that names the sender or the channel."""
        person = self._people.identity(event) if event.sender.id else ""
        if event.sender.bot:  # whatever else names it: nothing more than that it may talk
            return Admitted(True, "bots") if person in self._access.bots else None
        lists = (("owners", Role.OWNER), ("operators", Role.OPERATOR), ("users", Role.USER))
        for name, role in lists:
            if person and person in getattr(self._access, name):
                return Admitted(True, name, role)
        if person and (paired := self._people.role(person)):
            return Admitted(True, f"paired as {paired.value}", paired)
        team = event.sender.workspace or event.address.workspace
        if {joined(kind, team, role) for role in event.sender.roles} & set(self._access.roles):
            return Admitted(True, "roles")
        listed = self._places(event, kind) & set(self._access.channels)
        return Admitted(True, "channels") if listed else None

    def _in_profile(self, event: Inbound, role: Role, routed: Routed) -> bool:
        """Whether a profile's own rule lets somebody in whom the deployment lets in."""
        named = set(routed.profile.allow)
        whose = {one for one in Role if f"{one.value}s" in named}
        return any(map(role.includes, whose)) or self._people.identity(event) in named

    def _places(self, event: Inbound, kind: str) -> set[str]:
        """Return all by which a list may name where something was said."""
        workspace, thread = event.address.workspace, event.address.thread
        names = self._names(event.address)
        ids = {*names, *event.within} | {f"{name}:{thread}" for name in names if thread}
        if workspace:
            ids.add(thread)
        whole = {joined(kind, workspace)} if workspace else set()
        return whole | {joined(kind, part, id_) for id_ in ids - {""} for part in (workspace, "")}


def _of_plugin(said: Verdict | None) -> Admitted:
    return Admitted(True, said.reason) if said else Admitted(False, NOBODY)
