"""What every test shares: the backend of the gateway, and the list of vendor noise."""

import pytest

from vendor_noise import VENDOR_NOISE


def pytest_configure(config):
    for entry in VENDOR_NOISE:
        config.addinivalue_line("filterwarnings", entry.filter)


@pytest.fixture
def anyio_backend():
    """The gateway runs on asyncio; pure parts parametrise over both."""
    return "asyncio"
