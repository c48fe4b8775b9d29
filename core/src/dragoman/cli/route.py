"""``dragoman route explain``: which profile answers somewhere, and why."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs

from dragoman.cli.places import Found, add_place, find
from dragoman.cli.tracing import add_manifest, store_file, with_manifest
from dragoman.clock import SystemClock
from dragoman.errors import ManifestError
from dragoman.flow.admission import Admission, Admitted
from dragoman.flow.choices import PROFILE, Choices
from dragoman.flow.people import People
from dragoman.flow.routing import Routed, Router, names_of
from dragoman.logs import logger
from dragoman.manifest.document import Document, open_document
from dragoman.messages import Inbound, Place, Sender
from dragoman.outbox.moves import Moves
from dragoman.plugins.hooktable import HookTable
from dragoman.store.visit import Visit, visit

if TYPE_CHECKING:
    from dragoman.manifest.load import Loaded
    from dragoman.manifest.model import Manifest, Route
    from dragoman.secret import Redactor

_ANSWERED: Final = {
    "addressed": "what addresses the bot is answered",
    "all": "everything is answered",
    "off": "nothing is answered",
}
_OF_ROLES: Final = "; what roles of the platform allow is not known here"
_OF_PLUGINS: Final = (
    "plugins of the manifest are not asked here: they may refuse, or choose another"
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions and their arguments."""
    actions = parser.add_subparsers(metavar="action", required=True, dest="action")
    explain = actions.add_parser("explain", help="say which profile answers in a place, and why")
    add_place(explain)
    explain.add_argument("--user", help="who speaks there, by immutable id")
    add_manifest(explain, id_=False)


def run(args: argparse.Namespace) -> int:
    """Explain; return 1 where nobody would be answered."""
    return with_manifest(args, _explain)


def _explain(args: argparse.Namespace, loaded: Loaded, redactor: Redactor) -> int:
    import anyio

    try:
        store = store_file(loaded.manifest)
    except ManifestError:
        store = Path()  # kept where only the gateway reads it: then the manifest says all
    answered, lines = anyio.run(_asked, args, loaded.manifest, store, redactor)
    for name, text in lines:
        print(redactor(f"{name:<9} {text}"))
    return 0 if answered else 1


async def _asked(
    args: argparse.Namespace, manifest: Manifest, path: Path, redactor: Redactor
) -> tuple[bool, list[tuple[str, str]]]:
    async with visit(path) as store:
        log = logger("route", redactor)
        moves = Moves(store, log)
        await moves.load()
        found = await find(args, manifest, store, moves)
        hooks = HookTable.compile([], timeout=1, clock=SystemClock(), log=log, admit_by=frozenset())
        kinds = manifest.kinds
        people, choices = People(store, kinds), Choices(store, moves.names)
        await people.load()
        await choices.load()
        explaining = _Explaining(
            manifest=manifest,
            file=args.manifest,
            store=store,
            router=Router.of(manifest, moves.names),
            people=people,
            admission=Admission(people, manifest.access, kinds, hooks, moves.names),
            choices=choices,
        )
        event = _event(found, args.user)
        routed = explaining.routed(event)
        lines = [*explaining.why(event, routed)]
        answered = False
        if routed is not None:
            answered, said = await explaining.person(event, routed)
            lines += [said, *await explaining.session(event, routed)]
    if any(table.kind == "extensions" for table in manifest.components):
        lines.append(("plugins", _OF_PLUGINS))
    return answered, lines


def _event(found: Found, user: str | None) -> Inbound:
    """Return a message as it would come from there; in direct messages who spoke last speaks."""
    last = found.last
    known = last.sender.id if last and found.address.place is Place.DM else ""
    within = last.within if last else ()
    sender = Sender(user or known)
    return Inbound("", found.address, sender, "", datetime.now(UTC), within=within)


@attrs.frozen(kw_only=True)
class _Explaining:
    """The deployment's own rules, asked about one message."""

    manifest: Manifest
    file: Path
    store: Visit
    router: Router
    people: People
    admission: Admission
    choices: Choices

    def routed(self, event: Inbound) -> Routed | None:
        """Return how the message would be routed."""
        routed = self.router.choose(event)
        chosen = self.choices.of(event.address, PROFILE)
        if routed is not None and chosen in routed.offered:
            return self.router.of_name(str(chosen), routed)
        return routed

    def why(self, event: Inbound, routed: Routed | None) -> Iterator[tuple[str, str]]:
        """Say which profile it is, by which route, and which others matched."""
        if routed is None:
            yield "profile", "none: no route matches, and no profile is called default"
            return
        yield "profile", routed.name
        matching = self.router.matching(event)
        if not matching:
            yield "route", "none matches: it is the default profile"
        for best in matching[:1]:
            yield "route", f"{self._named(best)} names {', '.join(names_of(best)) or 'nothing'}"
        for other in matching[1:]:
            less = _less(other, matching[0])
            yield "beside it", f"{self._named(other)}, profile {other.profile}: {less}"
        if routed.name != routed.offered[0]:
            yield "chosen", f"with /profile, instead of {routed.offered[0]}"
        yield "offered", ", ".join(routed.offered)

    async def person(self, event: Inbound, routed: Routed) -> tuple[bool, tuple[str, str]]:
        """Return whether somebody is let in, and say by which rule and as what."""
        if not event.sender.id and not self.manifest.access.channels:
            return True, ("person", "nobody was named: say --user ID")
        spaces = dict.fromkeys(("", event.address.workspace))
        senders = [attrs.evolve(event.sender, workspace=space) for space in spaces]
        asked = [
            (one, await self.admission.decide(attrs.evolve(event, sender=one), routed))
            for one in senders
        ]
        sender, found = next((one for one in asked if one[1].allowed), asked[-1])
        who = self.people.identity(attrs.evolve(event, sender=sender)) if sender.id else "anybody"
        return found.allowed, ("person", f"{who}: {self._let_in(found)}")

    def _let_in(self, found: Admitted) -> str:
        if found.allowed:
            return f"let in by {found.reason}, as {found.role.value}"
        return f"not let in: {found.reason}" + _OF_ROLES * bool(self.manifest.access.roles)

    async def session(self, event: Inbound, routed: Routed) -> list[tuple[str, str]]:
        """Say which session it would be part of, and when groups are answered."""
        profile, dm = routed.profile, event.address.place is Place.DM
        key = self.people.conversation(event, profile.scope)
        known = await self.store.read.session(key, routed.name, profile.runtime)
        scope = (profile.scope.dm if dm else profile.scope.group).value
        place = "direct messages" if dm else f"a group, where {_ANSWERED[profile.trigger]}"
        session = f"{known or 'none yet'}; one for each {scope}"
        return [("place", f"{key}, {place}"), ("session", session)]

    def _named(self, route: Route) -> str:
        index = self.manifest.routes.index(route)
        document = open_document(self.file)
        line = document.line_of(("routes", index)) if isinstance(document, Document) else 0
        return f"routes[{index}] in line {line}"


def _less(route: Route, best: Route) -> str:
    """Say by what a route that matches lost."""
    own = names_of(route)
    missing = next((name for name in names_of(best) if name not in own), None)
    return f"names no {missing}" if missing else "names what is further around the channel"
