"""What tests ask of slack_sdk."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import pytest


async def refused(call: Awaitable[Any]) -> str:
    """Return the error that a call of slack_sdk is refused with; fail where it is not."""
    from slack_sdk.errors import SlackApiError

    with pytest.raises(SlackApiError) as caught:
        await call
    return str(caught.value.response["error"])
