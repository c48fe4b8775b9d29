"""Which profile an event belongs to: most specific route wins."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs

from dragoman.keys import Scope
from dragoman.manifest.ids import SPECIFICITY
from dragoman.manifest.model import Manifest, Profile, Route
from dragoman.messages import Address, Inbound, Lane, Place


@attrs.frozen
class Routed:
    """The profile that a route chose, or people did. ``route`` is ``None`` for the default profile.

    ``offered`` are the profiles among which may be chosen there, the route's own first.
    """

    name: str
    profile: Profile
    route: Route | None
    offered: tuple[str, ...] = ()


def specificity(route: Route) -> tuple[bool, bool, bool, bool, bool]:
    """Return what a route names, most telling first; the greater tuple wins."""
    user, thread, channel, workspace, platform = (
        getattr(route, key) is not None for key in SPECIFICITY
    )
    return user, thread, channel, workspace, platform


def names_of(route: Route) -> list[str]:
    """Return the keys that a route names, most telling first."""
    return [key for key in SPECIFICITY if getattr(route, key) is not None]


@attrs.frozen
class Router:
    """The manifest's routes, ordered once."""

    _routes: tuple[Route, ...]
    _profiles: Mapping[str, Profile]
    default: str | None
    """The profile of what no route takes; ``None`` refuses it."""
    _names: Callable[[Address], Sequence[str]]
    """All ids of a channel: those that it had before it moved, too."""

    @classmethod
    def of(
        cls,
        manifest: Manifest,
        ids: Callable[[Address], Sequence[str]] = lambda address: (address.channel,),
    ) -> Router:
        """Order the routes; the default is the profile of that name, or the only one."""
        names = list(manifest.profiles)
        default = "default" if "default" in names else names[0] if len(names) == 1 else None
        ordered = sorted(manifest.routes, key=specificity, reverse=True)
        return cls(tuple(ordered), manifest.profiles, default, ids)

    @property
    def profiles(self) -> Mapping[str, Profile]:
        """All profiles by name."""
        return self._profiles

    def lane_of(self, event: Inbound) -> Lane:
        """Return what an event may not be overtaken in: its lane, or a channel's lanes together.

        Sessions that a profile shares over a channel's threads take events in order of receipt.
        Between channels, which only one person's direct messages share, there is no such order.
        """
        lane = event.address.lane
        dm = event.address.place is Place.DM
        scopes = (profile.scope for profile in self._profiles.values())
        wide = {Scope.CHANNEL, Scope.PERSON}
        if any((rule.dm if dm else rule.group) in wide for rule in scopes):
            return (*lane[:3], "")
        return lane

    def choose(self, event: Inbound) -> Routed | None:
        """Return the profile of an event, or ``None`` where no route and no default takes it."""
        if matching := self.matching(event):
            best = matching[0]
            offered = tuple(dict.fromkeys((best.profile, *best.profiles)))
            return Routed(best.profile, self._profiles[best.profile], best, offered)
        if self.default is None:
            return None
        return Routed(self.default, self._profiles[self.default], None, (self.default,))

    def matching(self, event: Inbound) -> list[Route]:
        """Return all routes that match an event, the one that counts first.

        A route may name what holds the channel: that is less specific than the channel itself, and
        the nearer the more.
        """
        names = (*self._names(event.address), *event.within)
        matching = [route for route in self._routes if _matches(route, event, names)]
        return sorted(matching, key=lambda route: _telling(route, names), reverse=True)

    def of_name(self, name: str, routed: Routed) -> Routed:
        """Return the same with another profile, one of those that are offered."""
        return attrs.evolve(routed, name=name, profile=self._profiles[name])


def _telling(route: Route, names: Sequence[str]) -> tuple[object, ...]:
    """Return the `specificity` of a route for a channel of these names, the nearest first."""
    user, thread, channel, *rest = specificity(route)
    return (user, thread, channel, -names.index(route.channel) if route.channel else 0, *rest)


def _matches(route: Route, event: Inbound, names: Sequence[str]) -> bool:
    address = event.address
    wanted = (
        (route.platform, address.platform),
        (route.workspace, address.workspace),
        (route.thread, address.thread),
        (route.user, event.sender.id),
    )
    if route.channel is not None and route.channel not in names:
        return False
    return all(want is None or want == found for want, found in wanted)
