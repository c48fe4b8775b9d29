"""The manifest as values: what the tables that core owns may say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import attrs
from attrs.validators import deep_iterable, ge, gt, optional

from dragoman.keys import ScopeRule


def _help(text: str) -> dict[str, str]:
    return {"help": text}


_ROLES = ("owners", "operators", "users")


def _names_people(*words: str) -> Callable[[object, attrs.Attribute[str], str], None]:
    """Return a validator of one entry: one of these words, or a person."""

    def check(_: object, __: attrs.Attribute[str], value: str) -> None:
        if value not in words and not all(value.partition(":")):
            msg = f'must be {", ".join(words)}, or a person as kind:id, as in "telegram:12345678"'
            raise ValueError(msg)

    return check


def _names_model(_: object, __: attrs.Attribute[str], value: str) -> None:
    if value != "".join(value.split()) or value in {"", "default"} or "`" in value:
        msg = "must be a model's name, without white space; `default` is none"
        raise ValueError(msg)


@attrs.frozen(kw_only=True)
class Budget:
    """What a profile may use in a day, which begins at midnight UTC. What is not set has no end."""

    tokens: int | None = attrs.field(
        default=None, validator=optional(gt(0)), metadata=_help("tokens in a day, in and out")
    )
    cost: float | None = attrs.field(
        default=None,
        validator=optional(gt(0)),
        metadata=_help("US dollars in a day, of runtimes that say what they cost"),
    )

    @property
    def limits(self) -> bool:
        """Whether there is an end at all."""
        return self.tokens is not None or self.cost is not None


@attrs.frozen(kw_only=True)
class Profile:
    """Persona, runtime and rules of the conversations that are routed to it."""

    runtime: str = attrs.field(metadata=_help("id of a [runtimes.…] table"))
    memory: str | None = attrs.field(
        default=None, metadata=_help("id of a [memories.…] table; none by default")
    )
    memory_scope: Literal["conversation", "person", "profile"] = attrs.field(
        default="conversation",
        metadata=_help(
            "what shares what the agent remembers: one conversation; in direct messages one person, "
            "over all conversations and linked accounts (person); or all that the profile answers "
            "(profile)"
        ),
    )
    scope: ScopeRule = attrs.field(
        factory=ScopeRule, metadata=_help("what shares a session: channel, thread or user")
    )
    busy: Literal["queue", "collect", "steer", "interrupt"] = attrs.field(
        default="queue",
        metadata=_help(
            "what a message does that arrives during a turn: it waits for one of its own (queue), "
            "joins the others in the next one (collect), is handed to the running turn (steer), "
            "or ends it (interrupt)"
        ),
    )
    recovery: Literal["notify", "retry"] = attrs.field(
        default="notify",
        metadata=_help(
            "what becomes of a turn that a crash cut off: people are told (notify), or it is run "
            "again, unless a tool had begun (retry)"
        ),
    )
    verbosity: Literal["final", "status", "full"] = attrs.field(
        default="status",
        metadata=_help(
            "what people see of a turn beside its answer: nothing before it is whole (final), what "
            "runs now, until the end (status), or every step, to stay (full)"
        ),
    )
    reaction: str = attrs.field(
        default="",
        metadata=_help(
            "an emoji that a message bears while its answer is in the making, where the platform "
            "can do that; empty for none"
        ),
    )
    silences: tuple[str, ...] = attrs.field(
        default=(),
        metadata=_help(
            "answers that show nothing, as a marker that the persona is told to give; "
            "an empty text among them stands for an answer without text"
        ),
    )
    models: tuple[str, ...] = attrs.field(
        default=(),
        validator=deep_iterable(_names_model),
        metadata=_help(
            "models that people may choose among in a chat, with /model; the runtime's own stands "
            "where nothing is chosen"
        ),
    )
    allow: tuple[str, ...] = attrs.field(
        default=("users",),
        validator=deep_iterable(_names_people(*_ROLES)),
        metadata=_help(
            "whom this profile answers, of those that [access] lets in: owners, owners and "
            "operators (operators), all (users), and people as kind:id"
        ),
    )
    approvers: tuple[str, ...] = attrs.field(
        default=("requester", "owners"),
        validator=deep_iterable(_names_people("requester", "owners", "operators")),
        metadata=_help(
            "who may decide about tool calls that ask: the one whose message is being answered "
            "(requester), the owners, owners and operators (operators), and people as kind:id"
        ),
    )
    approval_timeout: float = attrs.field(
        default=86400.0,
        validator=ge(1),
        metadata=_help("seconds after which a question that nobody answered counts as denied"),
    )
    budget: Budget = attrs.field(
        factory=Budget,
        metadata=_help(
            "what may be used in a day: beyond it a running turn is stopped before its next step, "
            "and messages are refused, visibly"
        ),
    )
    trigger: Literal["addressed", "all", "off"] = attrs.field(
        default="addressed",
        metadata=_help(
            "which group messages are answered: those that address the bot, all, or none (off)"
        ),
    )


@attrs.frozen(kw_only=True)
class Route:
    """Sends what matches to a profile. What is not named matches everything."""

    profile: str = attrs.field(metadata=_help("id of a [profiles.…] table"))
    profiles: tuple[str, ...] = attrs.field(
        default=(),
        metadata=_help(
            "further profiles that people may choose among there, with /profile, and plugins"
        ),
    )
    platform: str | None = attrs.field(default=None, metadata=_help("id of a [platforms.…] table"))
    workspace: str | None = attrs.field(default=None, metadata=_help("workspace or guild id"))
    channel: str | None = attrs.field(
        default=None, metadata=_help("id of a channel or chat, or of the category that it is in")
    )
    thread: str | None = attrs.field(default=None, metadata=_help("thread or topic id"))
    user: str | None = attrs.field(default=None, metadata=_help("the sender's immutable id"))


@attrs.frozen(kw_only=True)
class Access:
    """Who may talk to the agents. Empty lists mean nobody."""

    owners: tuple[str, ...] = attrs.field(
        default=(), metadata=_help("people who may everything, as kind:id")
    )
    operators: tuple[str, ...] = attrs.field(
        default=(),
        metadata=_help("people who may look after it in chats, and let others in, as kind:id"),
    )
    users: tuple[str, ...] = attrs.field(
        default=(), metadata=_help("people who may talk to the agents, as kind:id")
    )
    roles: tuple[str, ...] = attrs.field(
        default=(),
        metadata=_help(
            "roles of a platform whose members may talk to the agents, as kind:workspace:role"
        ),
    )
    channels: tuple[str, ...] = attrs.field(
        default=(),
        metadata=_help(
            "where everybody may: a channel, a category, a workspace or server, or a thread (as "
            "kind:channel:thread), as kind:id or kind:workspace:id"
        ),
    )
    pairing: bool = attrs.field(
        default=False,
        metadata=_help(
            "answer a stranger's direct message with a code, by which an operator lets them in"
        ),
    )
    bots: tuple[str, ...] = attrs.field(
        default=(),
        metadata=_help(
            "bots that may talk to the agents, as kind:id, within limits.bot_messages; no command "
            "or decision is taken from them, and all others are ignored"
        ),
    )
    admit_by: tuple[str, ...] = attrs.field(
        default=(), metadata=_help("components whose word alone lets people in")
    )


@attrs.frozen(kw_only=True)
class Limits:
    """Bounds of one gateway process. Times are seconds."""

    concurrent_turns: int = attrs.field(
        default=200, validator=gt(0), metadata=_help("turns that run at once")
    )
    queued_per_session: int = attrs.field(
        default=50, validator=gt(0), metadata=_help("messages that wait for one session")
    )
    person_rate: int = attrs.field(
        default=60,
        validator=ge(0),
        metadata=_help(
            "messages of one person in a minute; more are refused, which is said once in a minute; "
            "0 sets no limit. /stop, /approve and /deny always work"
        ),
    )
    conversation_rate: int = attrs.field(
        default=240,
        validator=ge(0),
        metadata=_help(
            "messages that are answered in one channel or thread in a minute; 0 sets no limit"
        ),
    )
    bot_messages: int = attrs.field(
        default=5,
        validator=gt(0),
        metadata=_help(
            "messages of one bot in one channel within ten minutes; more are ignored until a person "
            "speaks there"
        ),
    )
    turn_timeout: float = attrs.field(
        default=900.0, validator=gt(0), metadata=_help("longest time of one turn, seconds")
    )
    answer_size: int = attrs.field(
        default=1 << 20, validator=gt(0), metadata=_help("longest answer of a turn, bytes")
    )
    file_size: int = attrs.field(
        default=50_000_000,
        validator=gt(0),
        metadata=_help("largest file that is sent or fetched, bytes"),
    )
    requests_kept: int = attrs.field(
        default=20,
        validator=ge(0),
        metadata=_help(
            "newest turns of a session of which is kept what was sent to models, to be shown by "
            "dragoman runs show --request; 0 keeps none"
        ),
    )
    hook_timeout: float = attrs.field(
        default=10.0, validator=gt(0), metadata=_help("longest time of one hook call, seconds")
    )
    grace: float = attrs.field(
        default=5.0, validator=ge(0), metadata=_help("time that running turns get at a stop")
    )
    loop_limit: float = attrs.field(
        default=60.0,
        validator=gt(0),
        metadata=_help("an event loop that is held longer ends the process, seconds"),
    )
    freshness: float = attrs.field(
        default=86_400.0,
        validator=gt(0),
        metadata=_help("messages older than this are not answered as if new, seconds"),
    )
    restarts: int = attrs.field(
        default=3,
        validator=gt(0),
        metadata=_help(
            "starts after crashes within five minutes from which on no turn is run again"
        ),
    )


@attrs.frozen(kw_only=True)
class DeliveryRules:
    """What happens to messages on their way out."""

    uncertain: Literal["resend_marked", "skip", "ask"] = attrs.field(
        default="resend_marked",
        metadata=_help(
            "what becomes of a message that may or may not be shown: it is sent again with a mark "
            "(resend_marked), left out (skip), or left to the operator (ask)"
        ),
    )


@attrs.frozen(kw_only=True)
class Network:
    """How every transport reaches the outside."""

    proxy: str | None = attrs.field(default=None, metadata=_help("proxy URL; else the environment"))
    ca_file: Path | None = attrs.field(
        default=None, metadata=_help("PEM file of further trusted authorities")
    )
    connect_timeout: float = attrs.field(
        default=10.0, validator=gt(0), metadata=_help("seconds until a connection must stand")
    )


@attrs.frozen(kw_only=True)
class ComponentTable:
    """One ``[platforms.<id>]`` table (or runtimes, memories, sinks, stores, extensions).

    ``plugin`` is ``plugin`` or ``plugin:component``; ``config`` is an instance of the component's
    own configuration class, or the raw table when the plugin is not usable.
    """

    kind: Literal["platforms", "runtimes", "memories", "sinks", "stores", "extensions"]
    id: str
    plugin: str
    config: Any = attrs.field(repr=False)
    optional: bool = False

    @property
    def name(self) -> str:
        """The table's place in the manifest, as in ``platforms.telegram``."""
        return f"{self.kind}.{self.id}"


@attrs.frozen(kw_only=True)
class Manifest:
    """A deployment: the pieces, and who talks to which."""

    data_dir: Path = attrs.field(
        default=Path(".dragoman"), metadata=_help("where the store and all files are kept")
    )
    store: Path | Literal[":memory:"] | None = attrs.field(
        default=None,
        validator=optional(attrs.validators.instance_of((Path, str))),
        metadata=_help('the SQLite store\'s file, or ":memory:"; data_dir/dragoman.db by default'),
    )
    components: tuple[ComponentTable, ...] = ()
    profiles: Mapping[str, Profile] = attrs.field(factory=dict)
    routes: tuple[Route, ...] = ()
    access: Access = attrs.field(factory=Access)
    limits: Limits = attrs.field(factory=Limits)
    delivery: DeliveryRules = attrs.field(factory=DeliveryRules)
    network: Network = attrs.field(factory=Network)

    @property
    def kinds(self) -> dict[str, str]:
        """The kind of each platform instance: the plugin that it is made of."""
        return {
            table.id: table.plugin.partition(":")[0]
            for table in self.components
            if table.kind == "platforms"
        }
