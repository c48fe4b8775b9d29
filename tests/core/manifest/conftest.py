"""A small catalogue, and a way to read a manifest's text as the program would."""

from __future__ import annotations

import enum
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import attrs
import pytest

from dragoman import Component, PluginError, Secret
from dragoman.manifest.load import Inspection, inspect

CANARY = "8675309:AAcanary_" + "x" * 30


class Style(enum.StrEnum):
    SHORT = "short"
    LONG = "long"


@attrs.frozen(kw_only=True)
class Webhook:
    port: int = attrs.field(validator=attrs.validators.gt(0), metadata={"help": "where it listens"})
    path: str = "/"


def _lower(value: str) -> str:
    return value.lower()


def _is_address(_: object, __: object, value: str) -> None:
    if not value.startswith("http"):
        msg = f"must be an address, not {value}"
        raise ValueError(msg)


@attrs.frozen(kw_only=True)
class ChatConfig:
    token: Secret = attrs.field(
        metadata={
            "help": "the bot's token",
            "pattern": r"\d+:\w{10,}",
            "pattern_help": "looks like 123456:AA…",
        }
    )
    mode: Literal["polling", "webhook"] = "polling"
    style: Style = Style.SHORT
    poll_timeout: float = attrs.field(
        default=30.0, validator=attrs.validators.ge(0), metadata={"help": "seconds"}
    )
    allow: tuple[int, ...] = ()
    size: tuple[int, int] | None = None
    labels: dict[str, str] = attrs.field(factory=dict)
    cache: Path = Path("cache")
    webhook: Webhook | None = None
    url: str = attrs.field(default="http://localhost", converter=_lower, validator=_is_address)
    extra: int | str = 0

    @staticmethod
    def check_id(list_name: str, native_id: str) -> str | None:
        if list_name == "channels" and not native_id.startswith("-"):
            return "probably missing -100"
        return None


@attrs.frozen(kw_only=True)
class AgentConfig:
    instructions: str | None = attrs.field(
        default=None, metadata={"help": "what it does", "example": "Be brief.", "init": True}
    )

    def __attrs_post_init__(self) -> None:
        if self.instructions is None:
            msg = "instructions are missing"
            raise ValueError(msg)


@attrs.frozen
class PlainConfig:
    pass


def _never_opened(*_: Any) -> Any:
    raise AssertionError("check opens nothing")


@attrs.frozen
class SmallCatalogue:
    """Answers like the real one, for components that are given by kind and reference."""

    components: Mapping[tuple[str, str], type[Any]]

    def resolve(self, kind: str, reference: str) -> Component[Any, Any]:
        config = self.components.get((kind, reference))
        if config is None:
            raise PluginError(reference, "", "not installed", f"pip install dragoman-{reference}")
        return Component(reference, config, _never_opened)


@pytest.fixture
def catalogue() -> SmallCatalogue:
    return SmallCatalogue(
        {
            ("platforms", "chat"): ChatConfig,
            ("platforms", "other"): PlainConfig,
            ("runtimes", "agent"): AgentConfig,
            ("runtimes", "plain"): PlainConfig,
            ("memories", "plain"): PlainConfig,
            ("extensions", "plain"): PlainConfig,
        }
    )


Reader = Callable[..., Inspection]


@pytest.fixture
def read_text(tmp_path: Path, catalogue: SmallCatalogue) -> Reader:
    def read(text: str, **environ: str) -> Inspection:
        path = tmp_path / "dragoman.toml"
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        found = inspect(path, catalogue, {"TOKEN": CANARY, **environ})
        return attrs.evolve(
            found,
            problems=tuple(attrs.evolve(each, file=path.name) for each in found.problems),
            warnings=tuple(attrs.evolve(each, file=path.name) for each in found.warnings),
        )

    return read


GOOD = """\
manifest = 1
[platforms.chat]
token = { env = "TOKEN" }
[runtimes.plain]
[profiles.default]
runtime = "plain"
[access]
owners = ["chat:1"]
"""


@pytest.fixture
def good() -> str:
    return GOOD


@pytest.fixture
def canary() -> str:
    return CANARY
