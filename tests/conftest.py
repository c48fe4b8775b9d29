"""What every test shares: the backend of the gateway, the list of vendor noise, the order."""

import pytest
from hypothesis import HealthCheck, settings

from vendor_noise import VENDOR_NOISE

LONG = {"soak", "packaging", "e2e", "behaviour"}
"""Folders of tests that take many seconds each."""


settings.register_profile(
    "machine may be busy", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


def pytest_configure(config):
    settings.load_profile("machine may be busy")
    for entry in VENDOR_NOISE:
        config.addinivalue_line("filterwarnings", entry.filter)


def pytest_collection_modifyitems(items):
    """Long tests come first: at the end no worker waits for the other's last one."""
    items.sort(key=lambda item: LONG.isdisjoint(item.path.parts))


@pytest.fixture
def anyio_backend():
    """The gateway runs on asyncio; pure parts parametrise over both."""
    return "asyncio"
