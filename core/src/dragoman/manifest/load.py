"""Reading a manifest: everything that is wrong with it, in one go, or a `Manifest`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import attrs

from dragoman.errors import ManifestError
from dragoman.manifest.document import FORMAT, Document, Finding, open_document
from dragoman.manifest.kinds import fields_of
from dragoman.manifest.model import Manifest
from dragoman.manifest.problems import UnusableError, expect, leaves, suggest
from dragoman.manifest.references import check_whole, field_readers
from dragoman.manifest.secrets import SecretReader
from dragoman.manifest.structure import Structurer
from dragoman.manifest.tables import KINDS, Resolver, Tables
from dragoman.secret import Redactor, Secret

_NOT_EXPANDED: Final = (
    '"${" is not expanded here: write the value itself, '
    'or { env = "NAME" } where a secret is expected'
)


@attrs.frozen
class Inspection:
    """What reading a manifest found; ``manifest`` is there when there are no problems."""

    manifest: Manifest | None
    problems: tuple[Finding, ...]
    warnings: tuple[Finding, ...] = ()
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
    document = open_document(path)
    if isinstance(document, Finding):
        return Inspection(None, (document,))
    redact = Redactor()
    if not _is_known_format(document):
        return Inspection(None, document.findings(document.problems, redact))
    secrets = SecretReader(path.absolute().parent, os.environ if environ is None else environ)
    manifest = _manifest(document, catalogue, secrets)
    _report_unexpanded(document)
    _warn_exposed(document, secrets)
    for secret in secrets.secrets:
        redact.learn(secret)
    return Inspection(
        None if document.problems.found else manifest,
        document.findings(document.problems, redact),
        document.findings(document.warnings, redact),
        tuple(secrets.secrets),
    )


def _is_known_format(document: Document) -> bool:
    """Say whether the rest of the file can be understood at all."""
    version = document.raw.get("manifest")
    with document.problems.at("manifest"):
        if version is None:
            raise UnusableError(f"write `manifest = {FORMAT}`: the version of this format")
        if expect(version, int) != FORMAT:
            document.problems.add(
                ("manifest",), f"version {version} is not known; this dragoman reads {FORMAT}"
            )
            return False
    return True


def _manifest(document: Document, catalogue: Resolver, secrets: SecretReader) -> Manifest | None:
    """Return the manifest as far as it could be read; useful only where nothing was reported."""
    tables = Tables(document, catalogue, Structurer(secrets))
    tables.read()
    check_whole(tables)
    keys = [key for key in fields_of(Manifest) if key != "components"]
    known = ("manifest", *keys, *KINDS)
    for key in document.raw:
        if key not in known:
            document.problems.add((key,), f"unknown key{suggest(key, known)}")
    with document.problems.at():
        own = {key: document.raw[key] for key in keys if key in document.raw}
        manifest: Manifest = Structurer(secrets, field_readers(tables)).record(own, Manifest)
        return attrs.evolve(manifest, components=tuple(tables.usable))
    return None


def _report_unexpanded(document: Document) -> None:
    """Report each string that counts on being expanded: what else is wrong there follows."""
    for path, text in leaves(document.raw):
        if isinstance(text, str) and "${" in text:
            found = document.problems.found
            found[:] = [each for each in found if each[0] not in {path, path[:-1]}]
            document.problems.add(path, _NOT_EXPANDED)


def _warn_exposed(document: Document, secrets: SecretReader) -> None:
    exposed = {secret.origin for secret in secrets.exposed}
    for path, text in leaves(document.raw):
        if path[-1] == "file" and isinstance(text, str):
            file = secrets.base / text.strip()
            if f"file:{file}" in exposed:
                document.warnings.add(path, f"other users can read {file}; chmod 600 it")
