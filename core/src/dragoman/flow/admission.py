"""Who may: one function for everything that comes in. Nobody may unless a rule says so."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs

from dragoman.hookspecs import ConversationView, Verdict
from dragoman.manifest.model import Access
from dragoman.messages import Address, Inbound, Sender
from dragoman.plugins.hooktable import HookTable


@attrs.frozen
class Admission:
    """The access rules of the manifest, and the plugins that may add to them.

    People are written ``kind:id``, with the workspace between where their ids belong to one. The
    list of channels may name a channel, a thread, what holds the channel (a category) or the whole
    workspace, each also with its workspace. A thread is named behind its channel; alone only where
    there are workspaces: elsewhere its id may be the number of any message.
    """

    _access: Access
    _kinds: Mapping[str, str]
    """The kind of each platform instance: the plugin it is made of."""
    _hooks: HookTable
    _names: Callable[[Address], Sequence[str]]
    """All ids of a channel: those that it had before it moved, too."""

    async def decide(self, event: Inbound, profile: str, profiles: tuple[str, ...]) -> Verdict:
        """Return the recorded decision; asked before routing, and after it with the profile.

        Every plugin is asked even where a list of the manifest allows: each may refuse.
        """
        platform = event.address.platform
        kind = self._kinds[platform]
        view = ConversationView(platform, kind, profile, profiles)
        said = await self._hooks.admit(event, view)
        if said is not None and not said.allowed:
            return said
        listed = self._listed(event, kind)
        if listed:
            return Verdict.allow(listed)
        return said or Verdict.refuse("not on any list")

    def _listed(self, event: Inbound, kind: str) -> str:
        """Return the list that names the sender or the channel, or nothing."""
        if event.sender.bot:
            return "bots" if identity_of(kind, event.sender) in self._access.bots else ""
        if event.sender.id:  # posts of a channel have no author
            person = identity_of(kind, event.sender)
            if person in self._access.owners:
                return "owners"
            if person in self._access.users:
                return "users"
        return "channels" if self._places(event, kind) & set(self._access.channels) else ""

    def _places(self, event: Inbound, kind: str) -> set[str]:
        """Return all by which a list may name where something was said."""
        workspace, thread = event.address.workspace, event.address.thread
        names = self._names(event.address)
        ids = {*names, *event.within} | {f"{name}:{thread}" for name in names if thread}
        if workspace:
            ids.add(thread)
        whole = {_identity(kind, workspace)} if workspace else set()
        return whole | {
            _identity(kind, part, id_) for id_ in ids - {""} for part in (workspace, "")
        }


def identity_of(kind: str, sender: Sender) -> str:
    """Return how the manifest writes a person of a platform of this kind."""
    return _identity(kind, sender.workspace, sender.id)


def _identity(*parts: str) -> str:
    return ":".join(part for part in parts if part)
