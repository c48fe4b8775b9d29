"""Whole gateways between peers that nobody here wrote."""

import pytest

from peers.aimock import AiMock
from peers.botapi import BotApi
from peers.deployment import AGENT, FIXTURES, MANIFEST
from peers.gateway import Gateway


@pytest.fixture
def bot_api():
    with BotApi() as api:
        yield api


@pytest.fixture
def model():
    with AiMock(FIXTURES) as mock:
        yield mock


@pytest.fixture
def gateway(bot_api, model, tmp_path):
    """A gateway that is not started yet."""
    folder = tmp_path / "deployment"
    folder.mkdir()
    (folder / "my_agent.py").write_text(AGENT)
    return Gateway(
        folder,
        MANIFEST.format(api_url=bot_api.url, model_url=model.base_url),
        {"TELEGRAM_TOKEN": bot_api.token, "MODEL_KEY": "sk-dummy"},
    )
