"""Who may: one function for everything that comes in. Nobody may unless a rule says so."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from dragoman.hookspecs import ConversationView, Verdict
from dragoman.manifest.model import Access
from dragoman.messages import Inbound
from dragoman.plugins.hooktable import HookTable


@attrs.frozen
class Admission:
    """The access rules of the manifest, and the plugins that may add to them.

    Identities are written ``kind:id``, with the workspace between where there is one.
    """

    _access: Access
    _kinds: Mapping[str, str]
    """The kind of each platform instance: the plugin it is made of."""
    _hooks: HookTable

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
        workspace = event.address.workspace
        if event.sender.id:  # posts of a channel have no author
            person = _identity(kind, workspace, event.sender.id)
            if person in self._access.owners:
                return "owners"
            if person in self._access.users:
                return "users"
        if _identity(kind, workspace, event.address.channel) in self._access.channels:
            return "channels"
        return ""


def _identity(kind: str, workspace: str, id_: str) -> str:
    return ":".join(part for part in (kind, workspace, id_) if part)
