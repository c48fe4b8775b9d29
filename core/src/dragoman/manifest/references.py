"""What one part of a manifest says about another: profiles, routes, access."""

from __future__ import annotations

from functools import partial
from typing import Final

from dragoman.manifest.document import Document
from dragoman.manifest.ids import ACCESS_LISTS, ROUTE_IDS, SPECIFICITY, access_entry, route_id
from dragoman.manifest.model import Access, Profile, Route
from dragoman.manifest.problems import UnusableError, each, expect, suggest
from dragoman.manifest.structure import ReadField
from dragoman.manifest.tables import Tables, check_table_id

_USERS: Final = {"runtimes": "runtime", "memories": "memory"}
"""The key of a profile that names a table, for each kind of table that only profiles use."""


def field_readers(tables: Tables) -> dict[tuple[type, str], ReadField]:
    """Return how those fields are read whose meaning is more than their type."""
    return {
        **{(Profile, key): partial(tables.reference, kind=kind) for kind, key in _USERS.items()},
        (Route, "profile"): partial(tables.reference, kind="profiles"),
        (Route, "profiles"): partial(_profiles, tables),
        (Route, "platform"): partial(tables.reference, kind="platforms"),
        **{(Route, key): route_id for key in ROUTE_IDS},
        **{(Access, name): partial(_entries, tables, name) for name in ACCESS_LISTS},
        (Access, "admit_by"): partial(_admitters, tables),
        **{(Profile, name): partial(_people, tables) for name in ("allow", "approvers")},
    }


def _entries(tables: Tables, name: str, value: object) -> tuple[str, ...]:
    """Return an access list, each entry once; kinds that no platform has are a warning."""

    def entry(index: int, written: object) -> str:
        made = access_entry(written, name, tables.checks)
        kind = made.partition(":")[0]
        if kind not in tables.checks:
            hint = suggest(kind, sorted(tables.checks))
            tables.document.warnings.add(
                ("access", name, index), f"no platform of kind {kind!r} is configured{hint}"
            )
        return made

    return tuple(dict.fromkeys(each(enumerate(expect(value, list)), entry)))


def _profiles(tables: Tables, value: object) -> tuple[str, ...]:
    """Return the profiles that a route offers beside its own."""
    names = enumerate(expect(value, list))
    return tuple(each(names, lambda _, name: tables.reference(name, kind="profiles")))


def _people(tables: Tables, value: object) -> tuple[str, ...]:
    """Return whom a profile names: people as in an access list, roles by their words."""

    def entry(_: int, written: object) -> str:
        if isinstance(written, str) and written.isalpha():
            return written
        return access_entry(written, "users", tables.checks)

    return tuple(each(enumerate(expect(value, list)), entry))


def _admitters(tables: Tables, value: object) -> tuple[str, ...]:
    """Return the full names of the components in ``admit_by``: ``extensions.door``."""

    def full_name(_: int, written: object) -> str:
        name, known = expect(written, str), tables.full_names()
        matching = [full for full in known if name in {full, full.partition(".")[2]}]
        if not matching:
            raise UnusableError(f"names no component of this manifest{suggest(name, known)}")
        if len(matching) > 1:
            raise UnusableError(f"say which one: {' or '.join(matching)}")
        if matching[0] in tables.left_out:
            raise UnusableError(f"needs {matching[0]}, which is left out")
        return matching[0]

    return tuple(each(enumerate(expect(value, list)), full_name))


def check_whole(tables: Tables) -> None:
    """Report what no single table shows: what is missing, doubled or without use."""
    document = tables.document
    problem, warn = document.problems.add, document.warnings.add
    for key in ("platforms", "profiles"):
        if not document.raw.get(key):
            problem((key,), f"at least one [{key}.<id>] table is needed")
    platforms, profiles = document.table("platforms"), document.table("profiles")
    if platforms and all(f"platforms.{name}" in tables.left_out for name in platforms):
        problem(("platforms",), "no platform is left: none of their plugins can be used")
    if len(profiles) > 1 and "default" not in profiles:
        problem(("profiles",), "with several profiles, one of them has to be called 'default'")
    for name in profiles:
        with document.problems.at("profiles", name):
            check_table_id(name)
    for kind, key in _USERS.items():
        used = [raw.get(key) for raw in profiles.values() if isinstance(raw, dict)]
        for name in document.table(kind):
            if name not in used and f"{kind}.{name}" not in tables.left_out:
                warn((kind, name), "no profile uses this table")
    if not any(
        document.table("access").get(name) for name in (*ACCESS_LISTS, "pairing", "admit_by")
    ):
        warn(
            ("access",),
            "nobody may talk to the agents yet; put your own id into owners, as kind:id, or let "
            "yourself in with pairing = true and `dragoman pair`",
        )
    _check_store(document)
    _check_routes(document)


def _check_store(document: Document) -> None:
    stores = list(document.table("stores"))
    for name in stores[1:2]:
        document.problems.add(("stores", name), "a deployment has one store; remove the others")
    if len(stores) == 1 and "store" in document.raw:
        text = f"[stores.{stores[0]}] says already where things are kept; remove one of both"
        document.problems.add(("store",), text)


def _check_routes(document: Document) -> None:
    """Report routes that claim one event with the same right.

    Routes are compared as the tuple (user, thread, channel, workspace, platform) of "is set"
    flags, user highest. Two routes with different flags are ordered by that tuple. Two with the
    same flags and different values never match one event, unless one names a channel and the other
    what holds it, of which the nearer counts. So a conflict is only possible between routes with
    the same keys and the same values, and that is an error.
    """
    routes = document.raw.get("routes")
    first: dict[tuple[str | None, ...], int] = {}
    for index, raw in enumerate(routes if isinstance(routes, list) else []):
        if isinstance(raw, dict):
            values = (raw.get(key) for key in SPECIFICITY)
            matched = tuple(None if each is None else str(each).strip() for each in values)
            other = first.setdefault(matched, index)
            if other != index:
                line = document.line_of(("routes", other))
                text = f"matches the same as routes[{other}] in line {line}; keep one"
                document.problems.add(("routes", index), text)
