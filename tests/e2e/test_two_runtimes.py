"""Both runtimes in one gateway, and a conversation that goes from one to the other and back.

One model server answers both, in the words of each; nobody of this project wrote it.
"""

import re

import pytest

from peers.aimock import AiMock
from peers.botapi import BotApi
from peers.claude_deployment import CLAUDE, MANIFEST, TOOLS, Chats
from peers.gateway import Gateway

PEOPLE = ("ada", "ben", "cyd")
AGENT = '''
"""An agent of the OpenAI Agents SDK with a tool."""

from agents import Agent, function_tool
from tools import measure

assistant = Agent(name="assistant", instructions="Help.", tools=[function_tool(measure)])
'''
OPENAI = """
[runtimes.assistant]
plugin = "openai"
agent = "my_agent:assistant"
api_key = {{ env = "MODEL_KEY" }}
base_url = "{url}/v1"
"""
ROUTES = """
[profiles.default]
runtime = "{moved}"

[profiles.openai]
runtime = "assistant"

[profiles.claude]
runtime = "helper"

[[routes]]
user = "700000001"
profile = "claude"

[[routes]]
user = "700000002"
profile = "openai"
"""


REMINDER = re.compile("<system-reminder>.*?</system-reminder>", re.DOTALL)


def measured(who, tool):
    said = f"measure {who}"
    call = {"name": tool, "arguments": {"place": who}}
    return [
        {
            "match": {"userMessage": said, "hasToolResult": False},
            "response": {"toolCalls": [call]},
        },
        {
            "match": {"userMessage": said, "hasToolResult": True},
            "response": {"content": f"21 degrees, {who}."},
        },
    ]


FIXTURES = [
    *measured("ada", "mcp__gateway__measure"),
    *measured("ben", "measure"),
    *(
        {"match": {"userMessage": word}, "response": {"content": f"Heard {word}."}}
        for word in ("apple", "birch", "cedar", "dates", "elder")
    ),
]


@pytest.fixture(scope="module")
def chats(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two") / "deployment"
    folder.mkdir()
    (folder / "tools.py").write_text(TOOLS)
    (folder / "my_agent.py").write_text(AGENT)
    with BotApi() as api, AiMock(FIXTURES) as model:
        url = model.base_url.removesuffix("/v1")
        users = [f"telegram:{700000001 + number}" for number in range(3)]
        manifest = MANIFEST.format(api_url=api.url, users=str(users).replace("'", '"'))
        manifest += CLAUDE.format(name="helper", model_url=url) + OPENAI.format(url=url)
        secrets = {"TELEGRAM_TOKEN": api.token, "MODEL_KEY": "sk-dummy"}
        gateway = Gateway(folder, manifest + ROUTES.format(moved="helper"), secrets)
        yield Chats(api, model, gateway, PEOPLE), manifest


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


def says(chats, who, word):
    chats.say(who, word)
    chats.until(who, f"Heard {word}.")
    return told(chats.model)


def talk(*words):
    return [one for word in words for one in (("user", word), ("assistant", f"Heard {word}."))][:-1]


@pytest.mark.proof
def test_two_runtimes_by_route_and_a_conversation_that_moves(chats):
    """A1, A7, D11: each runtime goes on with its own session, which the other one never reads."""
    chats, manifest = chats
    gateway = chats.gateway
    with gateway:
        for who in ("ada", "ben"):
            chats.say(who, f"measure {who}")
        for who in ("ada", "ben"):
            chats.until(who, f"21 degrees, {who}.")
            assert chats.done(f"measure-{who}") == 1
        kinds = chats.rows("SELECT runtime, count(*) FROM platform_sessions GROUP BY 1 ORDER BY 1")
        assert kinds == [("assistant", 1), ("helper", 1)]
        assert says(chats, "cyd", "apple") == talk("apple")
        for runtime, words in (
            ("assistant", ["birch", "cedar"]),
            ("helper", ["dates"]),
            ("assistant", ["elder"]),
        ):
            assert gateway.stop() == 0
            gateway.manifest = manifest + ROUTES.format(moved=runtime)
            gateway.start()
            heard = [says(chats, "cyd", word) for word in words]
            known = {"helper": ["apple", "dates"], "assistant": ["birch", "cedar", "elder"]}
            last = known[runtime].index(words[-1]) + 1
            assert heard[-1] == talk(*known[runtime][:last])
        assert gateway.stop() == 0
    sessions = """
        SELECT s.runtime, count(DISTINCT s.id), count(DISTINCT s.conversation_id),
            group_concat(DISTINCT r.namespace)
        FROM platform_sessions AS s JOIN records AS r ON r.session_id = s.id
        WHERE s.profile = 'default' AND r.namespace IN ('openai', 'claude') GROUP BY 1 ORDER BY 1
    """
    assert chats.rows(sessions) == [("assistant", 1, 1, "openai"), ("helper", 1, 1, "claude")]
    assert chats.rows("SELECT count(*) FROM conversations") == [(3,)]
