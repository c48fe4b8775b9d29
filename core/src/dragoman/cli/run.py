"""``dragoman run``: the gateway."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "-m", "--manifest", type=Path, default=Path("dragoman.toml"), help="the manifest's path"
    )
    parser.add_argument(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        default="info",
        help="what is logged; info by default",
    )
    parser.add_argument("--log-json", action="store_true", help="log one JSON object a line")
    parser.add_argument(
        "--standby",
        action="store_true",
        help="wait while another process holds the store, and take over when it ends",
    )


def run(args: argparse.Namespace) -> int:
    """Read the manifest, then run until a signal."""
    from dragoman.errors import ManifestError
    from dragoman.manifest.load import read
    from dragoman.plugins.catalogue import Catalogue

    catalogue = Catalogue.installed()
    try:
        loaded = read(args.manifest, catalogue)
    except ManifestError as error:
        print(error, file=sys.stderr)
        return 2
    from dragoman.application import Application
    from dragoman.cli.serving import make_importable, serve
    from dragoman.logs import configure as configure_logs
    from dragoman.secret import Redactor

    redactor = Redactor()
    for secret in loaded.secrets:
        redactor.learn(secret)
    make_importable(args.manifest)
    configure_logs(redactor, level=args.log_level, as_json=args.log_json)
    for warning in loaded.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    return serve(Application(loaded.manifest, catalogue, redactor), standby=args.standby)
