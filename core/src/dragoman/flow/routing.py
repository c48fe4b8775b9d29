"""Which profile an event belongs to: most specific route wins."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs

from dragoman.keys import Scope
from dragoman.manifest.model import Manifest, Profile, Route
from dragoman.messages import Address, Inbound, Lane, Place


@attrs.frozen
class Routed:
    """The profile that a route chose. ``route`` is ``None`` for the default profile."""

    name: str
    profile: Profile
    route: Route | None


def specificity(route: Route) -> tuple[bool, bool, bool, bool, bool]:
    """Return what a route names, most telling first; the greater tuple wins."""
    return (
        route.user is not None,
        route.thread is not None,
        route.channel is not None,
        route.workspace is not None,
        route.platform is not None,
    )


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
        """Return the profile of an event, or ``None`` where no route and no default takes it.

        A route may name what holds the channel: that is less specific than the channel itself, and
        the nearer the more.
        """
        names = (*self._names(event.address), *event.within)
        matching = [route for route in self._routes if _matches(route, event, names)]
        if matching:
            best = max(matching, key=lambda route: _telling(route, names))
            return Routed(best.profile, self._profiles[best.profile], best)
        if self.default is None:
            return None
        return Routed(self.default, self._profiles[self.default], None)


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
