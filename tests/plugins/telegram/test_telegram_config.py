"""The manifest's table, and ids in access lists."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import attrs
import pytest

from dragoman import Secret
from dragoman_telegram.config import TelegramConfig

TOKEN = Secret("env TELEGRAM_TOKEN", "123456:" + "A" * 35)


@pytest.mark.parametrize(
    ("value", "accepted"),
    [
        ("123456789:AAE_" + "x-" * 16, True),
        ("Use this token to access the HTTP API: 123456:" + "A" * 35, False),
        ("xoxb-123456", False),
        ("Bearer 123456:" + "A" * 35, False),
        ("123456:" + "A" * 35 + "\n", False),
        ("", False),
    ],
)
def test_fc_cfg_01_only_a_bot_token_looks_like_one(value: str, accepted: bool) -> None:
    pattern = attrs.fields(TelegramConfig).token.metadata["pattern"]
    assert bool(re.fullmatch(pattern, value)) is accepted


@pytest.mark.parametrize(
    "changes",
    [
        {"api_url": "api.telegram.org"},
        {"api_url": "ftp://x"},
        {"api_url": "https://me:pw@x"},
        {"api_url": "https://x?y=1"},
        {"poll_timeout": 0},
        {"poll_timeout": 51},
        {"poll_margin": 0},
        {"poll_margin": 61},
        {"poll_margin": float("nan")},
    ],
)
def test_values_that_cannot_work_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be"):
        TelegramConfig(token=TOKEN, **changes)


def test_a_slash_after_the_server_does_not_matter() -> None:
    assert TelegramConfig(token=TOKEN, api_url="http://x:1/api/").api_url == "http://x:1/api"


def test_every_field_says_what_it_is_for() -> None:
    assert all(field.metadata["help"] for field in attrs.fields(TelegramConfig))


@pytest.mark.parametrize(
    ("list_name", "native_id", "problem"),
    [
        ("channels", "-1001500000001", None),
        ("channels", "-4321", None),
        ("channels", "-1001500000001:7", None),
        ("channels", "-1001500000001:", "negative number"),
        ("users", "-1001500000001:7", "positive number"),
        ("channels", "1001500000001", "-100 is probably missing"),
        ("channels", "-", "negative number"),
        ("channels", "@name", "negative number"),
        ("users", "700000001", None),
        ("owners", "700000001", None),
        ("users", "-1001500000001", "belongs in channels"),
        ("users", "@name", "positive number"),
        ("users", "chat:-100", "positive number"),
        ("users", "0", "positive number"),
        ("users", "٣", "positive number"),
        ("owners", "1087968824", "anonymous"),
        ("users", "136817688", "anonymous"),
        ("users", "777000", "anonymous"),
        ("bots", "700000800", None),
        ("bots", "1087968824", "anonymous"),
        ("bots", "chat:-1001500000001", None),
        ("bots", "chat:1087968824", "-100 is probably missing"),
    ],
)
def test_fc_cfg_03_and_fc_aut_02_ids_in_access_lists_are_explained(
    list_name: str, native_id: str, problem: str | None
) -> None:
    found = TelegramConfig.check_id(list_name, native_id)
    if problem is None:
        assert found is None
    else:
        assert found is not None
        assert problem in found


def test_registering_imports_no_http_client() -> None:
    code = "import dragoman_telegram, sys; sys.exit('httpx2' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
