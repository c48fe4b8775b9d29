"""What one part of a manifest says about another: profiles, routes, access."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from dragoman.manifest.document import Document
from dragoman.manifest.ids import ACCESS_LISTS, ROUTE_IDS, access_entry, route_id, unknown_kind
from dragoman.manifest.locate import KeyPath
from dragoman.manifest.model import Access, Profile, Route
from dragoman.manifest.primitives import toml_type
from dragoman.manifest.problems import UnusableValueError, suggest
from dragoman.manifest.tables import Tables

_SPECIFICITY: Final = ("user", "thread", "channel", "workspace", "platform")


def read_profiles(document: Document, tables: Tables) -> dict[str, Profile]:
    """Return the profiles; each names components that exist, and one is the default."""
    report = document.report
    profiles: dict[str, Profile] = {}
    raw_profiles = document.subtables("profiles")
    for name, raw in raw_profiles.items():
        path: KeyPath = ("profiles", name)
        profile = document.structured(path, raw, Profile)
        if profile is not None:
            profiles[name] = profile
        for key, kind in (("runtime", "runtimes"), ("memory", "memories")):
            problem = tables.reference_problem(kind, raw.get(key))
            if problem:
                report.problem((*path, key), problem)
    names = list(document.table("profiles"))
    if not names and isinstance(document.raw.get("profiles", {}), dict):
        report.problem(("profiles",), "at least one [profiles.<id>] table is needed")
    elif len(names) > 1 and "default" not in names:
        report.problem(
            ("profiles",), "with several profiles, one of them has to be called 'default'"
        )
    return profiles


def warn_unused(document: Document, tables: Tables) -> None:
    """Warn of runtimes and memories that no profile names."""
    raw_profiles = [each for each in document.table("profiles").values() if isinstance(each, dict)]
    for key, kind in (("runtime", "runtimes"), ("memory", "memories")):
        used = {raw[key] for raw in raw_profiles if isinstance(raw.get(key), str)}
        for name in tables.ids[kind]:
            if name not in used and (kind, name) not in tables.left_out:
                document.report.warn((kind, name), "no profile uses this table")


def read_routes(document: Document, tables: Tables) -> tuple[Route, ...]:
    """Return the routes; no two of them may claim one event with the same right.

    Routes are compared as the tuple (user, thread, channel, workspace, platform) of "is set"
    flags, user highest. Two routes with different flags are ordered by that tuple. Two with the
    same flags and different values never match one event. So a conflict is only possible between
    routes with the same keys and the same values, and that is an error.
    """
    raw_routes = document.raw.get("routes", [])
    if not isinstance(raw_routes, list):
        document.report.problem(
            ("routes",), f"expected an array of tables, got {toml_type(raw_routes)}"
        )
        return ()
    routes: list[Route] = []
    first: dict[tuple[str | None, ...], int] = {}
    for index, raw in enumerate(raw_routes):
        route = _route(document, tables, index, raw)
        if route is None:
            continue
        routes.append(route)
        values = tuple(getattr(route, key) for key in _SPECIFICITY)
        other = first.setdefault(values, index)
        if other != index:
            line = document.report.line_of(("routes", other))
            document.report.problem(
                ("routes", index), f"matches the same as routes[{other}] in line {line}; keep one"
            )
    return tuple(routes)


def _route(document: Document, tables: Tables, index: int, raw: Any) -> Route | None:
    path: KeyPath = ("routes", index)
    if not isinstance(raw, dict):
        document.structured(path, raw, Route)
        return None
    cleaned = dict(raw)
    is_sound = True
    for key in ROUTE_IDS:
        if key in raw:
            try:
                cleaned[key] = route_id(raw[key])
            except UnusableValueError as error:
                document.report.problem((*path, key), str(error))
                del cleaned[key]
                is_sound = False
    problem = tables.reference_problem("platforms", raw.get("platform"))
    if problem:
        document.report.problem((*path, "platform"), problem)
    profile, profiles = raw.get("profile"), list(document.table("profiles"))
    if isinstance(profile, str) and profile not in profiles:
        hint = suggest(profile, profiles)
        document.report.problem((*path, "profile"), f"names no [profiles.<id>] table{hint}")
    route: Route | None = document.structured(path, cleaned, Route)
    return route if is_sound else None


def read_access(document: Document, tables: Tables) -> Access | None:
    """Return who may talk to the agents, each as ``kind:id``."""
    raw = document.table("access")
    cleaned = dict(raw)
    for name in ACCESS_LISTS:
        if isinstance(raw.get(name), list):
            cleaned[name] = list(dict.fromkeys(_entries(document, tables, name, raw[name])))
    if isinstance(raw.get("admit_by"), list):
        cleaned["admit_by"] = list(_admitters(document, tables, raw["admit_by"]))
    if not any(raw.get(name) for name in (*ACCESS_LISTS, "admit_by")):
        document.report.warn(
            ("access",),
            "nobody may talk to the agents yet; put your own id into owners, as kind:id",
        )
    access: Access | None = document.structured(("access",), cleaned, Access)
    return access


def _entries(document: Document, tables: Tables, name: str, values: list[object]) -> Iterator[str]:
    for index, value in enumerate(values):
        path: KeyPath = ("access", name, index)
        try:
            entry = access_entry(value, name, tables.checks)
        except UnusableValueError as error:
            document.report.problem(path, str(error))
            continue
        warning = unknown_kind(entry, sorted(tables.checks))
        if warning:
            document.report.warn(path, warning)
        yield entry


def _admitters(document: Document, tables: Tables, values: list[object]) -> Iterator[object]:
    """Yield the full names of the components in ``admit_by``: ``extensions.door``."""
    everything = [f"{kind}.{name}" for kind, names in tables.ids.items() for name in names]
    left_out = {f"{kind}.{name}" for kind, name in tables.left_out}
    for index, value in enumerate(values):
        path: KeyPath = ("access", "admit_by", index)
        if not isinstance(value, str):
            yield value  # its type is reported where the list is structured
            continue
        matching = [each for each in everything if value in {each, each.partition(".")[2]}]
        if len(matching) == 1 and matching[0] not in left_out:
            yield matching[0]
        elif len(matching) == 1:
            document.report.problem(path, f"needs {matching[0]}, which is left out")
        elif matching:
            document.report.problem(path, f"say which one: {' or '.join(matching)}")
        else:
            hint = suggest(value, everything)
            document.report.problem(path, f"names no component of this manifest{hint}")
