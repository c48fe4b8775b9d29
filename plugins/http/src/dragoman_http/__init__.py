"""HTTP for dragoman: health, metrics, and what other plugins mount, on one listener."""

from collections.abc import Iterable
from typing import Any

from dragoman import Component, hookimpl
from dragoman_http.config import HttpConfig
from dragoman_http.listener import open_http


@hookimpl
def dragoman_extensions() -> Iterable[Component[Any, object]]:
    """Register the extension ``http``."""
    return (Component("http", HttpConfig, open_http, backends=("asyncio",)),)
