"""What ``runs``, ``deliveries`` and ``sessions`` share: finding the store, asking it, and showing tables."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from dragoman.manifest.load import Loaded
    from dragoman.manifest.model import Manifest
    from dragoman.secret import Redactor
    from dragoman.store.trace import Table, Trace

Query: TypeAlias = "Callable[[argparse.Namespace, Trace], Sequence[Table]]"
Action: TypeAlias = "Callable[[argparse.Namespace, Manifest, Path, Redactor], int]"


def add_manifest(parser: argparse.ArgumentParser, *, id_: bool = True) -> None:
    """Add what every action takes."""
    if id_:
        parser.add_argument("id", help="which one")
    parser.add_argument(
        "-m", "--manifest", type=Path, default=Path("dragoman.toml"), help="the manifest's path"
    )


def add_output(parser: argparse.ArgumentParser, query: Query) -> None:
    """Add what an action takes that shows something of one id."""
    add_manifest(parser)
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")
    parser.add_argument("--texts", action="store_true", help="also show what people wrote")
    parser.set_defaults(query=query)


def add_filters(parser: argparse.ArgumentParser, query: Query, states: Sequence[str]) -> None:
    """Add what lists take."""
    add_manifest(parser, id_=False)
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")
    parser.add_argument("--state", choices=states, help="only those in this state")
    parser.add_argument("--session", help="only those of this session")
    parser.add_argument("--limit", type=int, default=50, help="how many, newest first; 50")
    parser.set_defaults(query=query, texts=False, id="")


def with_store(args: argparse.Namespace, action: Action) -> int:
    """Call an action with the manifest, the store's file and a redactor; return the exit code."""

    def on_file(_: argparse.Namespace, loaded: Loaded, redactor: Redactor) -> int:
        return action(args, loaded.manifest, store_file(loaded.manifest), redactor)

    return with_manifest(args, on_file)


def with_manifest(
    args: argparse.Namespace, action: Callable[[argparse.Namespace, Loaded, Redactor], int]
) -> int:
    """Call an action with what the manifest says and a redactor; return the exit code."""
    from dragoman.errors import ManifestError, PluginError, StoreError
    from dragoman.manifest.load import read
    from dragoman.plugins.catalogue import Catalogue
    from dragoman.secret import Redactor

    redactor = Redactor()
    try:
        loaded = read(args.manifest, Catalogue.installed())
        for secret in loaded.secrets:
            redactor.learn(secret)
        return action(args, loaded, redactor)
    except (ManifestError, PluginError, StoreError) as error:
        print(redactor(str(error)), file=sys.stderr)
        return 2


def answer(args: argparse.Namespace, _: Manifest, store: Path, redactor: Redactor) -> int:
    """Put ``args.query`` to the store and print what it finds; return 1 if that is nothing."""
    from dragoman.store.trace import open_trace

    with open_trace(store, texts=args.texts) as trace:
        tables = args.query(args, trace)
    if not tables:
        print(f"nothing has the id {args.id or args.session}", file=sys.stderr)
        return 1
    print_tables(tables, redactor, as_json=args.json)
    return 0


def print_tables(tables: Sequence[Table], redactor: Redactor, *, as_json: bool) -> None:
    """Print what was found, for people or for programs."""
    if as_json:
        found = {table.name: [dict(_pairs(table, row)) for row in table.rows] for table in tables}
        print(redactor(json.dumps(found, indent=2, ensure_ascii=False)))
    else:
        lists = sum(table.listed for table in tables)
        for table in tables:
            if lists > 1 and table.listed:
                if not table.rows:
                    continue
                print(f"\n{table.name}")
            for line in _list(table) if table.listed else _values(table):
                print(redactor(line).rstrip())


def store_file(manifest: Manifest) -> Path:
    """Return where SQLite's store is; raise `dragoman.ManifestError` where there is no such file."""
    from dragoman.errors import ManifestError
    from dragoman.sqlite import SqliteConfig

    table = next((table for table in manifest.components if table.kind == "stores"), None)
    if table is not None and isinstance(table.config, SqliteConfig):
        return table.config.file
    if table is not None or manifest.store == ":memory:":
        raise ManifestError(["this command reads SQLite's store in a file; the manifest has none"])
    return Path(manifest.store or manifest.data_dir / "dragoman.db")


def _list(table: Table) -> Iterator[str]:
    lines = [
        table.columns,
        *([_cell(value) for _, value in _pairs(table, row)] for row in table.rows),
    ]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        yield "  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True))


def _values(table: Table) -> Iterator[str]:
    for row in table.rows:
        yield table.name
        for column, value in _pairs(table, row):
            if value not in (None, ""):
                yield f"  {column:<15} {_cell(value)}"


def _pairs(table: Table, row: Sequence[object]) -> Iterator[tuple[str, object]]:
    for column, value in zip(table.columns, row, strict=True):
        if column.endswith("_at") and isinstance(value, int | float):
            yield column, datetime.fromtimestamp(value, UTC).isoformat(timespec="milliseconds")
        else:
            yield column, value


def _cell(value: object) -> str:
    """Return a value for a terminal: what others wrote must not command it."""
    text = "" if value is None else str(value)
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)
