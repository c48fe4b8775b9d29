"""The bot's own account and application."""

from __future__ import annotations

from peers.discord_fake.errors import Json
from peers.discord_fake.journal import Call
from peers.discord_fake.threads import known_guilds
from peers.discord_fake.world import World


def get_me(world: World, call: Call) -> Json:
    more = {"mfa_enabled": True, "locale": "en-US", "flags": 0, "verified": True, "email": None}
    return world.bot.json | more | {"premium_type": 0, "bio": ""}


def get_user(world: World, call: Call) -> Json:
    return world.person(call.ids["user"]).json


def get_my_guilds(world: World, call: Call) -> list[Json]:
    return [
        {
            "id": str(one.id),
            "name": one.name,
            "icon": None,
            "banner": None,
            "owner": False,
            "permissions": str(one.permissions),
            "features": [],
        }
        for one in known_guilds(world)
    ]


def get_application(world: World, call: Call) -> Json:
    """A1: the flags say which privileged intents are on."""
    return {
        "id": str(world.bot.id),
        "name": world.bot.username,
        "icon": None,
        "description": "",
        "summary": "",
        "rpc_origins": [],
        "bot_public": True,
        "bot_require_code_grant": False,
        "bot": world.bot.json,
        "owner": world.users[world.owner].json,
        "verify_key": world.verify_key,
        "team": None,
        "flags": world.flags,
        "approximate_guild_count": len(known_guilds(world)),
        "approximate_user_install_count": 0,
        "interactions_endpoint_url": world.endpoint or None,
        "hook": True,
        "integration_types_config": {"0": {}},
    }


def get_gateway(world: World, call: Call) -> Json:
    return {"url": world.gateway_url}


def get_gateway_bot(world: World, call: Call) -> Json:
    """W3: say where the gateway is, and how often a client may still identify itself."""
    return {"url": world.gateway_url, "shards": 1, "session_start_limit": world.budget.json}
