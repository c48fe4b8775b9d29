"""Scenarios over a real Bot API server, with the gateway as a process of its own."""

import threading
import time

import pytest

from peers.gateway import Gateway
from peers.telegram_fake import Cut, Reply, TelegramFake

ADA, BOB = 700000001, 700000002
REPEAT = "(this may be a repeat)\n\n"

MANIFEST = """
manifest = 1

[platforms.telegram]
token = {{ env = "TELEGRAM_TOKEN" }}
api_url = "{url}"
poll_timeout = 5
rich = "{rich}"

[runtimes.echo]
prefix = "{prefix}"
word_delay = {word_delay}

[profiles.default]
runtime = "echo"
recovery = "retry"

[delivery]
uncertain = "{uncertain}"

[access]
users = ["telegram:700000001", "telegram:700000002"]
"""


@pytest.fixture
def fake():
    with TelegramFake() as server:
        yield server
        server.on_call(None)


@pytest.fixture
def prepare(fake, tmp_path):
    """Return a gateway in front of the fake, not started yet."""

    def prepare(*, word_delay=0.0, uncertain="resend_marked", prefix="", rich="off"):
        manifest = MANIFEST.format(
            url=fake.url, word_delay=word_delay, uncertain=uncertain, prefix=prefix, rich=rich
        )
        return Gateway(tmp_path / "gateway", manifest, {"TELEGRAM_TOKEN": fake.token})

    return prepare


def polling(fake):
    """Wait until the gateway listens."""
    fake.until(lambda: fake.calls_of("getUpdates"))


def too_many(seconds):
    parameters = {"retry_after": seconds}
    return Reply(429, {"ok": False, "error_code": 429, "description": "", "parameters": parameters})


def test_hol_a_chat_that_must_wait_delays_no_other(fake, prepare, outcome):
    """Invariant 11: one chat is closed for 60 s, and its people's turn takes long besides."""
    with prepare():
        polling(fake)
        fake.on_call(
            lambda call: (
                too_many(60)
                if (call.method, call.stage) == ("sendMessage", "arrived")
                and call.params["chat_id"] == ADA
                else None
            )
        )
        fake.say(ADA, ADA, "blocked")
        fake.until(lambda: fake.calls_of("sendMessage"))
        began = time.monotonic()
        fake.say(BOB, BOB, "free")
        fake.until(lambda: fake.said_by_bot(BOB), 30)
        delay = time.monotonic() - began
        outcome("hol", delay_of_B=f"{delay:.2f} s")
        assert fake.said_by_bot(ADA) == []
        assert sum(call.params["chat_id"] == ADA for call in fake.calls_of("sendMessage")) == 1


def test_hol_a_long_turn_in_one_chat_delays_no_other(fake, prepare, outcome):
    """Invariant 11: 5 s of work in one chat, half a second in the other."""
    long = " ".join("word" for _ in range(10))
    with prepare(word_delay=0.5):
        polling(fake)
        fake.say(ADA, ADA, long)
        fake.until(lambda: fake.notices(ADA))
        began = time.monotonic()
        fake.say(BOB, BOB, "free")
        fake.until(lambda: "free" in fake.said_by_bot(BOB))
        delay = time.monotonic() - began - 0.5  # its own word
        outcome("hol/turn", delay_of_B=f"{delay:.2f} s")
        assert long not in fake.said_by_bot(ADA)
        fake.until(lambda: long in fake.said_by_bot(ADA))


def test_truncate_a_long_answer_is_shown_whole_in_parts(fake, prepare, outcome):
    """Invariant 6: 6,000 characters where a message takes 4,096."""
    start = "".join(f"{number:04} " for number in range(600))
    rest = "".join(f"{number:04} " for number in range(600, 1200)).rstrip() + "."
    with prepare(prefix=start):
        polling(fake)
        fake.say(ADA, ADA, rest)
        fake.until(lambda: fake.said_by_bot(ADA) and fake.said_by_bot(ADA)[-1].endswith("."))
    parts = fake.said_by_bot(ADA)
    outcome("truncate", characters=len(" ".join(parts)), parts=len(parts))
    assert len(start + rest) == 6000
    assert " ".join(parts) == start + rest
    assert len(parts) >= 2


def test_rate_the_full_text_arrives_after_the_wait(fake, prepare, outcome):
    """B6: every edit is answered 429 until its time has come; nothing is asked before."""
    words = " ".join(f"word{number}" for number in range(40))
    refused = []

    def limit(call):
        if (call.method, call.stage) == ("editMessageText", "arrived") and not refused:
            refused.append(time.monotonic())
            return too_many(3)
        return None

    fake.on_call(limit)
    with prepare(word_delay=0.05):
        polling(fake)
        fake.say(ADA, ADA, words)
        fake.until(lambda: words in fake.said_by_bot(ADA))
    edits = [call.stages["arrived"] for call in fake.calls_of("editMessageText")]
    waited = edits[1] - refused[0]
    outcome("rate", shown=f"{len(words)} of {len(words)}", waited=f"{waited:.1f} s of 3")
    assert fake.said_by_bot(ADA) == [words]
    assert waited >= 3


@pytest.mark.parametrize(
    ("uncertain", "shown"),
    [("resend_marked", ["hello", f"{REPEAT}hello"]), ("skip", ["hello"])],
)
def test_repeat_a_kill_as_the_reply_is_shown_follows_the_policy(
    fake, prepare, outcome, uncertain, shown
):
    """B7, invariant 5: one reply, or two of which the second says so."""
    killed = threading.Event()
    gateway = prepare(uncertain=uncertain)

    def kill(call):
        if (call.method, call.stage) == ("sendMessage", "applied") and not killed.is_set():
            gateway.kill()
            killed.set()
            return Cut()
        return None

    with gateway:
        polling(fake)
        fake.on_call(kill)
        fake.say(ADA, ADA, "hello")
        assert killed.wait(60)
        gateway.start()
        fake.say(ADA, ADA, "next")
        fake.until(lambda: "next" in fake.said_by_bot(ADA))
    outcome(f"repeat/{uncertain}", replies=len(shown), marked=len(shown) - 1)
    assert fake.said_by_bot(ADA) == [*shown, "next"]


def test_kill9_each_message_has_one_reply_in_order(fake, prepare, outcome):
    """B7, invariants 3 and 14: X is being answered, Y comes while nothing runs, Z after."""
    with prepare(word_delay=0.3) as gateway:
        polling(fake)
        fake.say(ADA, ADA, "X x x x")
        fake.until(lambda: fake.notices(ADA))
        gateway.kill()
        fake.say(ADA, ADA, "Y")
        gateway.start()
        fake.until(lambda: fake.said_by_bot(ADA))
        fake.say(ADA, ADA, "Z")
        fake.until(lambda: "Z" in fake.said_by_bot(ADA))
    outcome("kill9", shown=fake.said_by_bot(ADA))
    assert fake.said_by_bot(ADA) == ["X x x x", "Y", "Z"]


def test_rich_an_answer_has_its_form_while_it_grows_and_after_a_kill(fake, prepare, outcome):
    """C2, B7: one message, from its placeholder on; killed as it is shown, it is taken up again."""
    asked = "# Report\n\n- first\n- [x] second\n\n| a | b |\n|--|--:|\n| 1 | @ada |"
    killed = threading.Event()
    gateway = prepare(word_delay=0.15, rich="auto")

    def kill(call):
        rich = call.method == "editMessageText" and "rich_message" in call.params
        if rich and call.stage == "applied" and not killed.is_set():
            gateway.kill()
            killed.set()
            return Cut()
        return None

    def shown():
        found = [one for one in fake.chat(ADA) if one.sender == fake.bot_id]
        return found[-1] if found else None

    def whole():
        return shown() and [one["type"] for one in shown().blocks] == ["heading", "list", "table"]

    with gateway:
        polling(fake)
        fake.on_call(kill)
        fake.say(ADA, ADA, asked)
        assert killed.wait(60)
        gateway.start()
        fake.until(lambda: whole() and "ada" in shown().text)
        fake.say(ADA, ADA, "next")
        fake.until(lambda: "next" in fake.said_by_bot(ADA))
    outcome("rich", messages=len(fake.said_by_bot(ADA)), versions=len(fake.chat(ADA)[1].versions))
    assert fake.said_by_bot(ADA) == [
        "Report\n• first\n• second\na | b\n1 | @\u2060ada",
        "next",
    ]
