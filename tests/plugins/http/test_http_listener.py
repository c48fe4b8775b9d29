"""The socket: taken at the start or a clear error, and given back at the end."""

import socket
import sys

import httpx2
import pytest

from dragoman import PluginError
from dragoman_http.config import HttpConfig
from peers.gateway import Gateway
from peers.process import free_port

pytestmark = pytest.mark.anyio


async def test_a_port_that_is_taken_is_a_clear_error(site, http_table):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(BaseExceptionGroup) as raised:
            async with site(listener=http_table(port)):
                pass
    error = raised.value
    while isinstance(error, BaseExceptionGroup):
        (error,) = error.exceptions
    assert isinstance(error, PluginError)
    assert f"cannot listen on 127.0.0.1 port {port}: Address already in use" in str(error)
    assert "set another bind or port" in str(error)


async def test_a_port_is_free_again_at_once(site, http_table):
    port = free_port()
    for _ in range(2):
        async with site(listener=http_table(port)) as open_site:
            assert (await open_site.web.get("/livez")).status_code == 200


async def test_listening_for_others_is_warned_of(site, http_table, caplog):
    async with site(listener=http_table(bind="0.0.0.0")):
        assert "reachable from other machines" in caplog.text
    caplog.clear()
    async with site():
        assert "reachable from other machines" not in caplog.text


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ({"bind": "example.test"}, "IP address"),
        ({"port": 70000}, "65535"),
        ({"port": -1}, "65535"),
    ],
)
def test_what_cannot_be_listened_on_is_refused_by_the_table(table, reason):
    with pytest.raises(ValueError, match=reason):
        HttpConfig(**table)


def test_localhost_is_the_loopback_address():
    assert HttpConfig(bind="localhost") == HttpConfig()
    assert HttpConfig(bind="::1").local
    assert not HttpConfig(bind="::").local


def test_registering_imports_no_server():
    """E2: vendor code is imported when it is opened."""
    import subprocess

    code = (
        "import sys, dragoman_http\n"
        "assert dragoman_http.dragoman_extensions()\n"
        "bad = {'uvicorn', 'starlette', 'prometheus_client'} & set(sys.modules)\n"
        "sys.exit(', '.join(bad) or 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=110, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


MANIFEST = """
manifest = 1

[platforms.telegram]
token = {{ env = "TELEGRAM_TOKEN" }}
api_url = "http://127.0.0.1:{closed}"

[runtimes.echo]

[profiles.default]
runtime = "echo"

[extensions.http]
port = {port}

[access]
owners = ["telegram:700000001"]
"""


def test_a_real_process_is_alive_but_not_ready_without_a_network(tmp_path):
    """B9: an orchestrator does not kill it, nor send it anything; SIGTERM ends it in order."""
    port, token = free_port(), "123456:" + "A" * 35
    gateway = Gateway(
        tmp_path / "gateway",
        MANIFEST.format(port=port, closed=free_port()),
        {"TELEGRAM_TOKEN": token},
    )
    with gateway:
        gateway.until_logged(f"listening on http://127.0.0.1:{port}")
        gateway.until_logged("platform telegram reconnects")
        with httpx2.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as web:
            assert web.get("/livez").status_code == 200
            page = web.get("/readyz")
            assert page.status_code == 503
            assert page.json()["platforms"][0]["id"] == "telegram"
            assert token not in page.text
            assert "dragoman_ready 0.0" in web.get("/metrics").text
        assert gateway.stop() == 0
    assert "GET /livez" not in gateway.log
    assert "Traceback" not in gateway.log
