"""``dragoman init``: a commented manifest to start from."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.manifest.template import Choice
    from dragoman.plugins.catalogue import Catalogue


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "-m", "--manifest", type=Path, default=Path("dragoman.toml"), help="the file to write"
    )
    parser.add_argument("--platform", default="console", help="plugin of the platform; console")
    parser.add_argument("--runtime", default="echo", help="plugin of the runtime; echo")
    parser.add_argument("--force", action="store_true", help="replace a file that is there")


def run(args: argparse.Namespace) -> int:
    """Write the manifest and say what is left to fill in; return 2 if that cannot be done."""
    from dragoman.errors import PluginError
    from dragoman.manifest.problems import UnusableError
    from dragoman.manifest.template import secrets_to_set, template, write
    from dragoman.plugins.catalogue import Catalogue

    catalogue = Catalogue.installed()
    try:
        choices = (
            _choice(catalogue, "platforms", args.platform),
            _choice(catalogue, "runtimes", args.runtime),
        )
        text = template(choices)
        write(args.manifest, text, replace=args.force)
    except FileExistsError:
        print(f"{args.manifest} is there already; --force replaces it", file=sys.stderr)
        return 2
    except (PluginError, UnusableError, OSError) as error:
        print(f"dragoman: {error}", file=sys.stderr)
        return 2
    print(f"{args.manifest} is written. Now:")
    for variable in secrets_to_set(text):
        print(f"  set the environment variable {variable}")
    print("  put your own immutable id into [access] owners")
    print(f"  dragoman check --connect -m {args.manifest}")
    for choice in choices:
        if choice.component.setup:
            print(f"\n{choice.reference}:\n\n{choice.component.setup.strip()}")
    return 0


def _choice(catalogue: Catalogue, kind: str, reference: str) -> Choice:
    from dragoman.manifest.template import Choice

    component = catalogue.resolve(kind, reference)
    return Choice(kind, reference.partition(":")[0], reference, component)
