"""The Bot API server of the cases that are about Telegram's own wire."""

import pytest

from peers.telegram_fake import TelegramFake


@pytest.fixture
def fake():
    with TelegramFake(conflict_pause=0.05, repeat_wait=0.05) as server:
        yield server
