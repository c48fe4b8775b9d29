"""Who and what there is: the workspace, its people and channels, and the app."""

from __future__ import annotations

from typing import Final, Literal

import attrs

from peers.slack_fake.errors import Json

ChannelKind = Literal["channel", "group", "im", "mpim"]
PREFIXES: Final = {"channel": "C", "group": "C", "im": "D", "mpim": "C"}
SCOPES: Final = frozenset(
    "app_mentions:read assistant:write channels:history channels:read chat:write "
    "chat:write.customize commands files:read files:write groups:history groups:read im:history "
    "im:read im:write mpim:history mpim:read mpim:write reactions:read reactions:write team:read "
    "users:read".split()
)
"""What the app is granted unless a test asks for less."""


@attrs.frozen
class Team:
    id: str = "T0FIXTURE"
    name: str = "Fixture"
    domain: str = "fixture"
    enterprise_id: str | None = None
    """Set in an Enterprise Grid organisation."""


@attrs.frozen
class App:
    """The app that is tested. Tokens and secret belong to nobody."""

    id: str = "A0FIXTURE"
    bot_id: str = "B0FIXTURE"
    user_id: str = "U0BOT"
    name: str = "dragoman"
    bot_token: str = "xoxb-fixture-bot"
    app_token: str = "xapp-fixture-app"
    signing_secret: str = "fixture-signing-secret"
    scopes: frozenset[str] = SCOPES
    events: frozenset[str] | None = None
    """Which events it subscribes to, as a manifest names them; ``None`` is all of them."""

    def profile(self, team: Team) -> Json:
        """The ``bot_profile`` of its messages."""
        return {
            "id": self.bot_id,
            "deleted": False,
            "name": self.name,
            "updated": 1_700_000_000,
            "app_id": self.id,
            "user_id": self.user_id,
            "icons": {},
            "team_id": team.id,
        }


@attrs.frozen
class User:
    id: str
    name: str
    real_name: str = ""
    team_id: str = ""
    """Another workspace's for people from outside."""
    is_bot: bool = False

    def json(self, app: App) -> Json:
        profile: Json = {"real_name": self.real_name, "display_name": self.name}
        if self.id == app.user_id:
            profile |= {"api_app_id": app.id, "bot_id": app.bot_id}
        return {
            "id": self.id,
            "team_id": self.team_id,
            "name": self.name,
            "real_name": self.real_name,
            "deleted": False,
            "tz": "Etc/UTC",
            "tz_offset": 0,
            "profile": profile,
            "is_bot": self.is_bot,
            "is_app_user": False,
            "updated": 1_700_000_000,
        }


@attrs.define(eq=False)
class Channel:
    id: str
    name: str
    kind: ChannelKind
    members: list[str] = attrs.field(factory=list)
    created: int = 1_700_000_000
    archived: bool = False
    shared: bool = False
    """With another organisation (Slack Connect)."""

    @property
    def direct(self) -> bool:
        return self.kind == "im"

    def other(self, app: App) -> str:
        """The person at the other end of a direct message."""
        return next((one for one in self.members if one != app.user_id), app.user_id)

    def json(self, app: App, team: Team) -> Json:
        found: Json = {
            "id": self.id,
            "created": self.created,
            "is_im": self.direct,
            "is_archived": self.archived,
            "context_team_id": team.id,
            "updated": self.created * 1000,
        }
        if self.direct:
            return found | {"user": self.other(app), "is_open": True, "is_org_shared": False}
        return found | {
            "name": self.name,
            "name_normalized": self.name,
            "is_channel": self.kind == "channel",
            "is_group": self.kind == "group",
            "is_mpim": self.kind == "mpim",
            "is_private": self.kind != "channel",
            "is_general": False,
            "is_shared": self.shared,
            "is_org_shared": False,
            "is_ext_shared": self.shared,
            "is_member": app.user_id in self.members,
            "num_members": len(self.members),
            "topic": {"value": "", "creator": "", "last_set": 0},
            "purpose": {"value": "", "creator": "", "last_set": 0},
        }


@attrs.define
class Settings:
    """How this Slack behaves where it may behave in more than one way. May be changed at any time."""

    edit_window: float | None = None
    """R13: seconds after which a message cannot be edited; ``None`` for no end."""
    stream_lifetime: float = 300.0
    """R16: seconds after which Slack ends a stream by itself."""
    stream_limit: int = 12_000
    """R17: characters that one streamed message takes."""
    missing_root: Literal["unthreaded", "refused"] = "unthreaded"
    """R10: what becomes of a reply to a thread that does not exist."""
    client_msg_ids: bool = True
    """R11: whether ``client_msg_id`` keeps a message from being posted twice."""
    duplicate_window: float = 3600.0
    """R11: for how many seconds such an id is remembered."""
    mention_first: bool = False
    """R25: whether ``app_mention`` comes before ``message``."""
    mentions_in_dms: bool = False
    """R25: whether a mention in a direct message is an ``app_mention`` too."""
    retries: tuple[float, ...] = (0.0, 60.0, 300.0)
    """R21: seconds before each further attempt."""
    patience: float = 3.0
    """R21: seconds that an app has to acknowledge."""
