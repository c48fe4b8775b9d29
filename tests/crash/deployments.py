"""The deployments that are killed: each opens its peers and says what its manifest is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

import attrs

from crash.backstage import Backstage, model_conversation
from crash.chats import ChatPeer, DiscordPeer, SlackPeer
from crash.conductor import Conductor
from crash.judge import Judgement
from crash.model import ModelRelay
from crash.points import Point
from crash.scene import Peer, Said, choices, conversation, errands, past_sessions, words
from crash.telegram import TelegramPeer
from crash.wire import PatientPeer, WirePeer
from peers.deployment import AGENT


@attrs.frozen
class Set:
    """What a gateway is started with: its manifest's tables, its environment, and its platform."""

    peer: Peer
    tables: str
    environment: Mapping[str, str] = MappingProxyType({})
    files: Mapping[str, str] = MappingProxyType({})
    look_behind: Callable[[Path, Judgement], Sequence[str]] = lambda _folder, _judgement: ()
    """Returns what is wrong in the gateway's folder, and at peers that people do not see."""
    look_dead: Callable[[Path], Sequence[str]] = lambda _folder: ()
    """Returns what a kill has left that it may not, before the next life begins."""


@attrs.frozen(kw_only=True)
class Deployment:
    """A gateway between peers.

    ``certain`` says that its platform can tell whether a send was applied. ``sampled`` asks for
    one point per site only, and for every passage once if it is ``"passages"``.
    """

    name: str
    certain: bool
    said: tuple[Said, ...]
    open: Callable[[Conductor], AbstractContextManager[Set]]
    recovery: str = "notify"
    sampled: bool | Literal["passages"] = False
    sites: tuple[str, ...] = ()
    """Where it is killed, by the beginnings of sites; everywhere where none is named."""
    killed_before: Point | None = None
    """Where a first kill is: then the points are those of the recovery from it."""
    timed: tuple[str, ...] = ()
    """Sites that are passed more or less often as time goes: their last points may be missed."""
    limit: float = 40.0
    """Seconds that a trial may take."""
    effects: int = 0
    """How many of the messages make the agent do what must not be done twice."""

    @property
    def may_be_cut(self) -> int:
        """How many answers may end with a word of the interruption, at the most."""
        return len(self.said) if self.recovery == "notify" else self.effects

    @property
    def label(self) -> str:
        """The name by which reports call it."""
        return f"{self.name}/{self.recovery}"


ECHO: Final = """
[runtimes.echo]
word_delay = {word_delay}

[profiles.default]
runtime = "echo"
recovery = "{recovery}"
"""


MAKER: Final = """
[runtimes.maker]
plugin = "crash:maker"

[profiles.default]
runtime = "maker"
recovery = "{recovery}"
"""


CLERK: Final = """
[runtimes.clerk]
plugin = "crash:clerk"
words = "{words}"
word_delay = 0.25

[profiles.default]
runtime = "clerk"
recovery = "{recovery}"
"""

DIARY: Final = """
[runtimes.diary]
plugin = "crash:diary"

[profiles.default]
runtime = "diary"
recovery = "retry"
"""

TOLD: Final = words("gil", 8)

Open: TypeAlias = Callable[[Conductor], AbstractContextManager[Set]]

TELEGRAM: Final = """
[platforms.telegram]
token = {{ env = "TELEGRAM_TOKEN" }}
api_url = "{url}"

[access]
users = ["telegram:700000001", "telegram:700000002"]
"""

ASSISTANT: Final = """
[runtimes.assistant]
plugin = "openai"
agent = "my_agent:assistant"
api_key = {{ env = "MODEL_KEY" }}
base_url = "{url}"

[profiles.default]
runtime = "assistant"
recovery = "{recovery}"
"""


def _wire_and_echo(recovery: str, *, certain: bool) -> Open:
    @contextmanager
    def opened(conductor: Conductor) -> Iterator[Set]:
        with WirePeer(conductor, certain=certain) as peer:
            yield Set(peer, wire_table(peer, certain=certain) + echo(recovery, 0.11))

    return opened


def _wire_and_maker(recovery: str) -> Open:
    @contextmanager
    def opened(conductor: Conductor) -> Iterator[Set]:
        with WirePeer(conductor, certain=False) as peer:
            yield Set(peer, wire_table(peer, certain=False) + MAKER.format(recovery=recovery))

    return opened


@contextmanager
def _wire_and_diary(conductor: Conductor) -> Iterator[Set]:
    with PatientPeer(conductor, certain=True) as peer:
        yield Set(peer, wire_table(peer, certain=True) + DIARY)


def _telegram_and_echo(recovery: str) -> Open:
    @contextmanager
    def opened(conductor: Conductor) -> Iterator[Set]:
        with TelegramPeer(conductor) as peer:
            # Telegram bears one edit a second. This grows for 2.3 s: shown, edited, and made final.
            tables = TELEGRAM.format(url=peer.url) + echo(recovery, 0.26)
            yield Set(peer, tables, {"TELEGRAM_TOKEN": peer.token})

    return opened


def _chats_and_clerk(recovery: str, make: Callable[[Conductor], ChatPeer]) -> Open:
    @contextmanager
    def opened(conductor: Conductor) -> Iterator[Set]:
        with make(conductor) as peer:
            tables = peer.tables + CLERK.format(words=TOLD, recovery=recovery)
            yield Set(peer, tables, peer.environment)

    return opened


def _wire_and_model(recovery: str, backstage: Backstage) -> Open:
    @contextmanager
    def opened(conductor: Conductor) -> Iterator[Set]:
        with (
            WirePeer(conductor, certain=True) as peer,
            ModelRelay(conductor, backstage.model()) as relay,
        ):
            tables = wire_table(peer, certain=True) + ASSISTANT.format(
                recovery=recovery, url=relay.url
            )
            yield Set(peer, tables, {"MODEL_KEY": "sk-dummy"}, {"my_agent.py": AGENT})

    return opened


def wire_table(peer: WirePeer, *, certain: bool, buttons: int = 0) -> str:
    """Return the tables of the wire platform and of the people in its two chats."""
    return f"""
[platforms.wire]
plugin = "crash:wire"
peer = "{peer.address}"
certain = {str(certain).lower()}
buttons = {buttons}

[access]
users = ["crash:1", "crash:2"]
"""


def echo(recovery: str, word_delay: float) -> str:
    """Return the tables of the echo runtime."""
    return ECHO.format(recovery=recovery, word_delay=word_delay)


def deployments(backstage: Backstage) -> Sequence[Deployment]:
    """Return all of them, in the order in which they are reported."""
    # With a model it is the harder rule that is tried: a cut turn's history has to be taken back.
    model = Deployment(
        name="model",
        certain=True,
        said=model_conversation("1", "2"),
        open=_wire_and_model("retry", backstage),
        recovery="retry",
        sampled=True,
        effects=1,
    )
    echoes = [
        one
        for recovery in ("notify", "retry")
        for one in (
            Deployment(
                name="telegram",
                certain=False,
                said=conversation("700000001", "700000002"),
                open=_telegram_and_echo(recovery),
                recovery=recovery,
            ),
            Deployment(
                name="wire",
                certain=True,
                said=conversation("1", "2"),
                open=_wire_and_echo(recovery, certain=True),
                recovery=recovery,
            ),
            bare_wire(recovery),
            Deployment(
                name="files",
                certain=False,
                said=errands("1", "2"),
                open=_wire_and_maker(recovery),
                recovery=recovery,
            ),
            attrs.evolve(
                bare_wire(recovery), name="again", killed_before=Point("commit.Shown", 1, "after")
            ),
        )
    ]
    # A turn that is only told of offers nothing that could be pressed: these are run again.
    chats = [
        Deployment(
            name=name,
            certain=True,
            said=choices("1", "2", TOLD),
            open=_chats_and_clerk("retry", make),
            recovery="retry",
            sampled=True,
        )
        for name, make in (("discord", DiscordPeer), ("slack", SlackPeer))
    ]
    sessions = Deployment(
        name="sessions",
        certain=True,
        said=past_sessions("1"),
        open=_wire_and_diary,
        recovery="retry",
        sites=("commit.Undo", "commit.Reset", "commit.Resume", "commit.Accept", "commit.Settle"),
    )
    return [*echoes, model, *chats, sessions]


def bare_wire(recovery: str = "notify") -> Deployment:
    """Return the deployment that shows what a broken gateway does: no platform covers it up."""
    return Deployment(
        name="bare",
        certain=False,
        said=conversation("1", "2"),
        open=_wire_and_echo(recovery, certain=False),
        recovery=recovery,
    )
