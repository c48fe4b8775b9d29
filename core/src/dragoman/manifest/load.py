"""Reading a manifest: everything that is wrong with it, in one go, or a `Manifest`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import attrs

from dragoman.errors import ManifestError
from dragoman.manifest.document import (
    Document,
    check_format,
    parse,
    report_unexpanded,
    report_unknown_keys,
    strings_in,
)
from dragoman.manifest.model import Limits, Manifest, Network
from dragoman.manifest.problems import Finding, Report
from dragoman.manifest.references import read_access, read_profiles, read_routes, warn_unused
from dragoman.manifest.secrets import SecretReader
from dragoman.manifest.tables import KINDS, Resolver, TableReader, Tables
from dragoman.secret import Redactor, Secret

if TYPE_CHECKING:
    from dragoman.manifest.locate import KeyPath

SETTINGS: Final[dict[str, Any]] = {
    "data_dir": Path,
    "store": Literal[":memory:"] | Path,
    "limits": Limits,
    "network": Network,
}
TOP_LEVEL: Final = ("manifest", *SETTINGS, *KINDS, "profiles", "routes", "access")


@attrs.frozen
class Inspection:
    """What reading a manifest found; ``manifest`` is there when there are no problems."""

    manifest: Manifest | None
    problems: tuple[Finding, ...]
    warnings: tuple[Finding, ...]
    secrets: tuple[Secret, ...] = ()


@attrs.frozen
class Loaded:
    """A manifest that can be used. ``secrets`` are those it names, for redaction."""

    manifest: Manifest
    warnings: tuple[str, ...]
    secrets: tuple[Secret, ...]


def read(path: Path, catalogue: Resolver, environ: Mapping[str, str] | None = None) -> Loaded:
    """Return the manifest at ``path``, or raise `ManifestError` with every problem it has.

    It imports the plugins that the manifest names and reads the secrets it names; it opens
    nothing and touches no network.
    """
    found = inspect(path, catalogue, environ)
    if found.manifest is None:
        raise ManifestError([str(problem) for problem in found.problems])
    return Loaded(found.manifest, tuple(map(str, found.warnings)), found.secrets)


def inspect(
    path: Path, catalogue: Resolver, environ: Mapping[str, str] | None = None
) -> Inspection:
    """Return all that can be said about the manifest at ``path``; raises nothing."""
    file = str(path)
    parsed = parse(path, file)
    if isinstance(parsed, Finding):
        return Inspection(None, (parsed,), ())
    raw, lines = parsed
    report = Report(file, lines)
    if not check_format(raw, report):
        return Inspection(None, tuple(report.problems), ())
    from dragoman.manifest.structure import make_converter

    base = path.absolute().parent
    reader = SecretReader(base, os.environ if environ is None else environ)
    document = Document(raw, base, report, make_converter(reader))
    report_unexpanded(raw, report)
    report_unknown_keys(raw, list(TOP_LEVEL), report)
    manifest = _manifest(document, catalogue)
    _warn_exposed(reader, document)
    redact = Redactor()
    for secret in reader.secrets:
        redact.learn(secret)
    return Inspection(
        None if report.problems else manifest,
        report.in_order(report.problems, redact),
        report.in_order(report.warnings, redact),
        tuple(reader.secrets),
    )


def _manifest(document: Document, catalogue: Resolver) -> Manifest | None:
    """Return the manifest as far as it could be read; useful only where nothing was reported."""
    tables = TableReader(document, catalogue).read()
    _require_platform(document, tables)
    _allow_one_store(document, tables)
    profiles = read_profiles(document, tables)
    routes = read_routes(document, tables)
    access = read_access(document, tables)
    warn_unused(document, tables)
    settings: dict[str, Any] = {
        key: document.structured((key,), document.raw[key], cls)
        for key, cls in SETTINGS.items()
        if key in document.raw
    }
    if document.report.problems or access is None:
        return None
    default: Any = attrs.fields(Manifest).data_dir.default
    settings.setdefault("data_dir", document.base / default)
    return Manifest(
        components=tables.usable, profiles=profiles, routes=routes, access=access, **settings
    )


def _require_platform(document: Document, tables: Tables) -> None:
    path: KeyPath = ("platforms",)
    names = tables.ids["platforms"]
    if not isinstance(document.raw.get("platforms", {}), dict):
        return
    if not names:
        document.report.problem(path, "at least one [platforms.<id>] table is needed")
    elif all(("platforms", name) in tables.left_out for name in names):
        document.report.problem(path, "no platform is left: none of their plugins can be used")


def _allow_one_store(document: Document, tables: Tables) -> None:
    names = tables.ids["stores"]
    if len(names) > 1:
        document.report.problem(
            ("stores", names[1]), "a deployment has one store; remove the others"
        )
    elif names and "store" in document.raw:
        document.report.problem(
            ("store",),
            f"[stores.{names[0]}] says already where things are kept; remove one of both",
        )


def _warn_exposed(reader: SecretReader, document: Document) -> None:
    exposed = {secret.origin for secret in reader.exposed}
    for path, text in strings_in(document.raw):
        file = document.base / text.strip()
        if path[-1] == "file" and f"file:{file}" in exposed:
            document.report.warn(path, f"other users can read {file}; chmod 600 it")
