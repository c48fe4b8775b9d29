"""``dragoman chat``: an agent in this terminal, with or without a manifest."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.application import Application
    from dragoman.manifest.model import Manifest
    from dragoman.plugins.catalogue import Catalogue
    from dragoman.secret import Secret


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "-m", "--manifest", type=Path, help="talk to a profile of this manifest instead"
    )
    parser.add_argument("--profile", help="which profile of the manifest; its default otherwise")
    parser.add_argument(
        "--data-dir", type=Path, help="where the conversation is kept; the user's state directory"
    )


def run(args: argparse.Namespace) -> int:
    """Chat until the input ends."""
    from dragoman.application import Application
    from dragoman.cli.serving import make_importable, serve
    from dragoman.errors import ManifestError
    from dragoman.logs import configure as configure_logs
    from dragoman.plugins.catalogue import Catalogue
    from dragoman.secret import Redactor

    catalogue = Catalogue.installed()
    redactor = Redactor()
    try:
        manifest, secrets, words = (
            _of_manifest(args, catalogue) if args.manifest else _without_manifest(args, catalogue)
        )
    except ManifestError as error:
        print(error, file=sys.stderr)
        return 2
    for secret in secrets:
        redactor.learn(secret)
    if args.manifest:
        make_importable(args.manifest)
    configure_logs(redactor, level="warning", as_json=False)
    print(words, file=sys.stderr)
    return serve(Application(manifest, catalogue, redactor), _until_input_ends)


async def _until_input_ends(app: Application) -> None:
    from dragoman.console.platform import Console

    console = await app.platform("console")
    assert isinstance(console, Console)
    await console.ended.wait()
    app.stop()


def _without_manifest(
    args: argparse.Namespace, catalogue: Catalogue
) -> tuple[Manifest, tuple[Secret, ...], str]:
    """Put a deployment together from what is installed: OpenAI where it can work, else echo."""
    from dragoman.manifest.model import ComponentTable, Manifest, Profile
    from dragoman.secret import Secret

    key = os.environ.get("OPENAI_API_KEY", "").strip()
    plugin = "openai" if key and catalogue.found.get("openai") else "echo"
    config = catalogue.resolve("runtimes", plugin).config
    if plugin == "openai":
        secret = Secret("environment variable OPENAI_API_KEY", key)
        runtime = config(
            name="assistant",
            instructions="You are a helpful assistant. Answer briefly.",
            api_key=secret,
        )
        secrets: tuple[Secret, ...] = (secret,)
        words = "Talking to an OpenAI agent (OPENAI_API_KEY is set). Ctrl-D ends."
    else:
        runtime, secrets = config(), ()
        reason = "dragoman-openai is not installed" if key else "OPENAI_API_KEY is not set"
        words = f"Talking to the echo runtime ({reason}). Ctrl-D ends."
    console = catalogue.resolve("platforms", "console").config()
    return (
        _with_console(
            Manifest(
                data_dir=args.data_dir or _state_dir(),
                components=(
                    ComponentTable(kind="runtimes", id="agent", plugin=plugin, config=runtime),
                    ComponentTable(
                        kind="platforms", id="console", plugin="console", config=console
                    ),
                ),
                profiles={"default": Profile(runtime="agent")},
            ),
            "default",
        ),
        secrets,
        words,
    )


def _of_manifest(
    args: argparse.Namespace, catalogue: Catalogue
) -> tuple[Manifest, tuple[Secret, ...], str]:
    """Take a manifest's runtimes and profiles, with the console as the only platform."""
    import attrs

    from dragoman.errors import ManifestError
    from dragoman.flow.routing import Router
    from dragoman.manifest.load import read
    from dragoman.manifest.model import ComponentTable

    loaded = read(args.manifest, catalogue)
    manifest = loaded.manifest
    name: str = args.profile or Router.of(manifest).default or ""
    if name not in manifest.profiles:
        known = ", ".join(sorted(manifest.profiles))
        raise ManifestError([f"{args.manifest}: there is no profile {name!r}; there is {known}"])
    console = catalogue.resolve("platforms", "console").config()
    kept = tuple(
        table for table in manifest.components if table.kind not in ("platforms", "stores")
    )
    table = ComponentTable(kind="platforms", id="console", plugin="console", config=console)
    changed = attrs.evolve(
        manifest,
        data_dir=args.data_dir or manifest.data_dir / "chat",
        store=None,
        components=(*kept, table),
        routes=(),
    )
    return (
        _with_console(changed, name),
        loaded.secrets,
        f"Talking to profile {name!r} of {args.manifest}. Ctrl-D ends.",
    )


def _with_console(manifest: Manifest, profile: str) -> Manifest:
    """Let the person at the terminal in, and route what they say to the profile."""
    import attrs

    from dragoman.manifest.model import Access, Route

    return attrs.evolve(
        manifest,
        routes=(Route(profile=profile, platform="console"),),
        access=Access(owners=("console:local",)),
    )


def _state_dir() -> Path:
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "dragoman" / "chat"
