"""What a model is given after an exchange was taken back, said again, or left for another session.

Both runtimes of the SDKs, on Telegram; one model server that nobody of this project wrote.
"""

import re

import pytest

from dragoman.flow.pastsessions import UNDONE
from peers.aimock import AiMock
from peers.botapi import BotApi
from peers.claude_deployment import CLAUDE, MANIFEST, TOOLS, Chats, until
from peers.gateway import Gateway

AGENT = '''
"""An agent of the OpenAI Agents SDK."""

from agents import Agent

assistant = Agent(name="assistant", instructions="Help.")
'''
OPENAI = """
[runtimes.openai]
plugin = "openai"
agent = "my_agent:assistant"
api_key = {{ env = "MODEL_KEY" }}
base_url = "{url}/v1"

[profiles.default]
runtime = "openai"
"""
ROUTE = """
[profiles.{name}]
runtime = "{name}"

[[routes]]
user = "{user}"
profile = "{name}"
"""
RUNTIMES = ("claude", "local", "openai")
REMINDER = re.compile("<system-reminder>.*?</system-reminder>", re.DOTALL)
WORDS = ("apple", "birch", "cedar", "dates", "elder", "figs")
FIXTURES = [
    {"match": {"userMessage": word}, "response": {"content": f"Heard {word}."}} for word in WORDS
]


@pytest.fixture(scope="module")
def chats(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sessions") / "deployment"
    folder.mkdir()
    (folder / "my_agent.py").write_text(AGENT)
    (folder / "tools.py").write_text(TOOLS)
    with BotApi() as api, AiMock(FIXTURES) as model:
        url = model.base_url.removesuffix("/v1")
        people = {name: 700000001 + number for number, name in enumerate(RUNTIMES)}
        users = [f"telegram:{user}" for user in people.values()]
        manifest = MANIFEST.format(api_url=api.url, users=str(users).replace("'", '"'))
        for name in ("claude", "local"):
            manifest += CLAUDE.format(name=name, model_url=url)
        manifest = manifest.replace("[runtimes.local]", '[runtimes.local]\ntranscripts = "local"')
        manifest += OPENAI.format(url=url)
        manifest += "".join(ROUTE.format(name=name, user=user) for name, user in people.items())
        secrets = {"TELEGRAM_TOKEN": api.token, "MODEL_KEY": "sk-dummy"}
        gateway = Gateway(folder, manifest, secrets)
        with gateway:
            yield Chats(api, model, gateway, RUNTIMES)


def told(model):
    """What people and models had said by the newest call; reminders are the program's own words."""
    said = []
    for one in model.journal()[-1]["body"]["messages"]:
        content = one.get("content") or ""
        parts = [content] if isinstance(content, str) else [part["text"] for part in content]
        text = REMINDER.sub("", "".join(parts)).strip()
        if text and one["role"] in ("user", "assistant"):
            said.append((one["role"], text))
    return said


def asks(chats, who, word, text=None):
    """Say something, and return what the model was given for it."""
    seen = len(chats.model.journal())
    chats.say(who, text or word)
    until(lambda: len(chats.model.journal()) > seen, 30)
    chats.until(who, f"Heard {word}.")
    until(lambda: chats.rows("SELECT 1 FROM agent_runs WHERE ended_at IS NULL") == [])
    return told(chats.model)


def commands(chats, who, text, answer):
    chats.say(who, text)
    chats.until(who, answer)


def talk(*words):
    return [one for word in words for one in (("user", word), ("assistant", f"Heard {word}."))][:-1]


@pytest.mark.proof
@pytest.mark.parametrize("who", RUNTIMES)
def test_the_model_is_given_what_is_left(chats, who):
    """A8, B11: after an undo, a retry, a new session and the one before, word by word."""
    asks(chats, who, "apple")
    asks(chats, who, "birch")
    commands(chats, who, "/undo", UNDONE)
    assert asks(chats, who, "cedar") == talk("apple", "cedar")
    assert asks(chats, who, "cedar", "/retry") == talk("apple", "cedar")
    commands(chats, who, "/new", "A new conversation begins.")
    assert asks(chats, who, "dates") == talk("dates")
    commands(chats, who, "/resume 1", "The conversation goes on with 1: apple.")
    assert asks(chats, who, "elder") == talk("apple", "cedar", "elder")
    commands(chats, who, "/resume 2", "The conversation goes on with 2: dates.")
    assert asks(chats, who, "figs") == talk("dates", "figs")
