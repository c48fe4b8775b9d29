"""Messages that a Bot API server delivers to ``dragoman run``, through its own listener."""

import urllib.error
import urllib.request

import pytest

from peers.gateway import Gateway
from peers.process import free_port
from peers.telegram_fake import TelegramFake

ADA = 700000001

MANIFEST = """
manifest = 1

[platforms.telegram]
token = {{ env = "TELEGRAM_TOKEN" }}
api_url = "{api}"
mode = "webhook"
webhook_url = "http://127.0.0.1:{port}/telegram"

[runtimes.echo]

[profiles.default]
runtime = "echo"

[extensions.http]
port = {port}

[access]
users = ["telegram:700000001"]
"""


def forged(port):
    """Return the status that a request without the secret gets."""
    body = b'{"update_id":1,"message":{"message_id":1,"date":1,"chat":{"id":700000001}}}'
    request = urllib.request.Request(f"http://127.0.0.1:{port}/telegram", body)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with pytest.raises(urllib.error.HTTPError) as caught:
        opener.open(request, timeout=10)
    answer = caught.value
    return answer.code, answer.read()


def test_fc_aut_06_a_webhook_is_delivered_to_answered_and_kept_over_a_restart(tmp_path):
    """C2, B2, invariants 1 and 3: what comes while the gateway is away is answered later, once."""
    port = free_port()
    with TelegramFake(loopback_webhooks=True, webhook_scale=0.1) as fake:
        manifest = MANIFEST.format(api=fake.url, port=port)
        gateway = Gateway(tmp_path / "gateway", manifest, {"TELEGRAM_TOKEN": fake.token})
        with gateway:
            fake.until(lambda: fake.calls_of("setWebhook"), 30)
            fake.say(ADA, ADA, "one")
            fake.until(lambda: fake.said_by_bot(ADA) == ["one"], 30)
            assert forged(port) == (401, b"")
            assert gateway.stop() == 0
            fake.say(ADA, ADA, "two")
            fake.until(lambda: len(fake.deliveries) > 1, 30)
            gateway.start()
            fake.until(lambda: fake.said_by_bot(ADA) == ["one", "two"], 30)
            fake.until(lambda: not fake.pending(), 30)
            assert gateway.stop() == 0
        secrets = {call.params["secret_token"] for call in fake.calls_of("setWebhook")}
        assert len(secrets) == 1
        assert not fake.calls_of("getUpdates")
        assert secrets.pop() not in gateway.log
