"""A tool that asks first, over a platform, the SDK and a model server, through kills as well."""

import json
import re
import sqlite3
import subprocess
import time
from contextlib import closing

import attrs
import pytest

from peers.aimock import AiMock
from peers.botapi import BotApi
from peers.gateway import DRAGOMAN, Gateway

pytestmark = pytest.mark.proof

PEOPLE = {
    name: 700000001 + number
    for number, name in enumerate(
        ("ada", "ben", "cyd", "dot", "eve", "flo", "gil", "hal", "ida", "jon")
    )
}
PROFILES = {"flo": "again", "gil": "hasty"}

AGENT = '''
"""An agent whose tool asks first, and writes down each time that it is used."""

import asyncio
from pathlib import Path

from agents import Agent, function_tool


@function_tool(needs_approval=True)
async def delete_files(path: str) -> str:
    """Delete what is below a path."""
    with Path("deleted").open("a") as file:
        file.write(f"{path}\\n")
    while Path("hold").exists():
        await asyncio.sleep(0.02)
    return f"{path} is gone."


assistant = Agent(name="assistant", instructions="Help.", tools=[delete_files])
'''

MANIFEST = """
manifest = 1

[platforms.telegram]
token = {{ env = "TELEGRAM_TOKEN" }}
api_url = "{api_url}"
poll_timeout = 5

[runtimes.assistant]
plugin = "openai"
agent = "my_agent:assistant"
api_key = {{ env = "MODEL_KEY" }}
base_url = "{model_url}"

[profiles.default]
runtime = "assistant"

[profiles.again]
runtime = "assistant"
recovery = "retry"

[profiles.hasty]
runtime = "assistant"
approval_timeout = 1

[access]
users = {users}
"""

ROUTE = """
[[routes]]
user = "{user}"
profile = "{profile}"
"""

WANTED = {name: [name] for name in PEOPLE} | {"ida": ["ida", "old"]}
"""The paths that the agent wants to delete for a person, each by a call of its own."""

LOOK, REMEMBERED = "Let me see.", "You asked about files."

FIXTURES = [
    {"match": {"userMessage": "remember"}, "response": {"content": REMEMBERED}},
    *(
        {
            "match": {"userMessage": f"delete {name}", "hasToolResult": False},
            "response": {
                "content": LOOK,
                "toolCalls": [
                    {"name": "delete_files", "arguments": {"path": path}} for path in WANTED[name]
                ],
            },
        }
        for name in PEOPLE
    ),
    *(
        {
            "match": {"userMessage": f"delete {name}", "hasToolResult": True},
            "response": {"content": f"That was {name}."},
        }
        for name in PEOPLE
    ),
]


@attrs.define(eq=False)
class Chats:
    """Private chats with one gateway. Each test has people of its own."""

    api: BotApi
    model: AiMock
    gateway: Gateway
    said: int = 0

    def say(self, who, text):
        self.said += 1
        self.api.say(PEOPLE[who], text, message_id=self.said)

    def shown(self, who):
        return list(self.api.messages(PEOPLE[who]).values())

    def until(self, who, text, limit=30.0):
        """Wait until a message of the bot contains a text."""
        self.api.wait_for(lambda: any(text in one for one in self.shown(who)), limit)

    def ask(self, who):
        """Let a person want files deleted; return the name of the question that comes."""
        self.say(who, f"delete {who}")
        self.until(who, "/approve")
        (question,) = [one for one in self.shown(who) if "/approve" in one]
        assert "delete_files" in question
        assert f'"path": "{who}"' in question
        assert self.runs(who) == 0
        return re.search("/approve ([0-9a-f]{8})", question)[1]

    def cards(self, who):
        """The questions that a person sees: message id, text now, and what its buttons carried."""
        shown = self.api.messages(PEOPLE[who])
        sent = [one for one in self.api.calls("sendMessage") if one["params"].get("reply_markup")]
        return [
            (
                number,
                shown[number],
                {key["text"]: key["callback_data"] for row in rows for key in row},
            )
            for call in sent
            if call["params"]["chat_id"] == PEOPLE[who]
            and (number := call["answer"].get("result", {}).get("message_id"))
            for rows in [call["params"]["reply_markup"]["inline_keyboard"]]
        ]

    def press(self, who, card, label):
        """Press a button, by the message that has it or had it."""
        number, _, buttons = card
        self.said += 1
        person = {"id": PEOPLE[who], "is_bot": False, "first_name": who.title()}
        chat = {"id": PEOPLE[who], "type": "private"}
        message = {"message_id": number, "date": int(time.time()), "chat": chat}
        query = {"id": str(self.said), "from": person, "chat_instance": "1", "message": message}
        self.api.inject({"callback_query": query | {"data": buttons[label]}})

    def told(self, text):
        """Whether somebody who pressed was told this."""
        answers = self.api.calls("answerCallbackQuery")
        return text in [one["params"].get("text") for one in answers]

    def until_ended(self, who, *outcomes):
        """Wait until a person's cards say how their questions ended, and have no buttons."""

        def ended():
            last = [text.splitlines()[-1] for _, text, _ in self.cards(who)]
            numbers = {number for number, _, _ in self.cards(who)}
            edits = [call["params"] for call in self.api.calls("editMessageText")]
            bare = {one["message_id"] for one in edits if "reply_markup" not in one}
            return last == list(outcomes) and numbers <= bare

        self.api.wait_for(ended, 40.0)

    def runs(self, who):
        """How often the tool was run for a person."""
        file = self.gateway.folder / "deleted"
        return file.read_text().split().count(who) if file.exists() else 0

    def until_runs(self, *who):
        until(lambda: all(map(self.runs, who)))

    def until_sent(self):
        """Wait until the gateway knows that all it has sent is shown."""
        open_ = "SELECT 1 FROM deliveries WHERE state IN ('pending', 'sending', 'uncertain')"
        until(lambda: not self.rows(open_))

    def inputs(self, who):
        """What the model was told of a person's conversation, call by call."""
        return [one for one in self.model.inputs() if f"delete {who}" in map(text_of, one)]

    def rows(self, sql):
        with closing(sqlite3.connect(self.gateway.folder / ".dragoman" / "dragoman.db")) as db:
            return db.execute(sql).fetchall()


@pytest.fixture(scope="module")
def chats(tmp_path_factory):
    """One deployment for all of it; tests that kill its process start it again."""
    folder = tmp_path_factory.mktemp("deployment")
    (folder / "my_agent.py").write_text(AGENT)
    with BotApi() as api, AiMock(FIXTURES) as model:
        manifest = MANIFEST.format(
            api_url=api.url,
            model_url=model.base_url,
            users=json.dumps([f"telegram:{person}" for person in PEOPLE.values()]),
        )
        for name, profile in PROFILES.items():
            manifest += ROUTE.format(user=PEOPLE[name], profile=profile)
        environment = {"TELEGRAM_TOKEN": api.token, "MODEL_KEY": "sk-dummy"}
        with Gateway(folder, manifest, environment) as gateway:
            yield Chats(api, model, gateway)
            assert gateway.stop() == 0


def until(condition, limit=30.0):
    deadline = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def text_of(message):
    content = message.get("content")
    return content if isinstance(content, str) else ""


def outputs(messages):
    """The outputs of tools in what a model was told, by their call."""
    return {one["tool_call_id"]: text_of(one) for one in messages if one["role"] == "tool"}


def calls(messages):
    return [call["id"] for one in messages for call in one.get("tool_calls") or ()]


def test_invariant_8_a_tool_runs_when_it_is_approved_and_the_history_has_it(chats):
    """B12, D9, D5: asked, approved, run once, answered; the next turn knows the call and its output."""
    name = chats.ask("ada")
    chats.say("ada", f"/approve {name}")
    chats.until("ada", "That was ada.")
    assert chats.runs("ada") == 1
    chats.say("ada", "do you remember")
    chats.until("ada", REMEMBERED)
    shown = [one for one in chats.shown("ada") if "May I run" not in one]
    assert sorted(shown) == sorted([LOOK, "delete_files: approved.", "That was ada.", REMEMBERED])
    first, second, third = chats.inputs("ada")
    assert calls(first) == []
    (call,) = calls(second)
    assert outputs(second) == {call: "ada is gone."}
    assert calls(third) == [call]
    assert outputs(third) == {call: "ada is gone."}
    said = [text_of(one) for one in third if one["role"] == "user"]
    assert said == ["delete ada", "do you remember"]


def test_invariant_8_a_tool_that_is_denied_does_not_run_and_the_model_knows_why(chats):
    """B12, D9: the reason reaches the model as a person's words."""
    name = chats.ask("ben")
    chats.say("ben", f"/deny {name} not that folder")
    chats.until("ben", "That was ben.")
    assert chats.runs("ben") == 0
    (told,) = outputs(chats.inputs("ben")[-1]).values()
    assert told.startswith("Not run: a person was asked")
    assert "not that folder" in told


def test_invariant_8_a_question_outlives_a_killed_gateway(chats):
    """B7, B12, D9: asked by one process, approved in the next, run once."""
    name = chats.ask("cyd")
    chats.until_sent()
    chats.gateway.kill()
    chats.gateway.start()
    chats.say("cyd", f"/approve {name}")
    chats.until("cyd", "That was cyd.")
    assert chats.runs("cyd") == 1
    assert len([one for one in chats.shown("cyd") if "May I run" in one]) == 1
    assert not [one for one in chats.shown("cyd") if "restart" in one]
    assert len(chats.inputs("cyd")) == 2


def test_fc_apr_03_a_card_outlives_a_killed_gateway(chats):
    """FC-APR-03, FC-APR-05, B12: the first press on it is no second one; what would run stays."""
    chats.ask("hal")
    chats.until_sent()
    (card,) = chats.cards("hal")
    assert list(card[2]) == ["Approve", "Deny", "Always here"]
    chats.gateway.kill()
    chats.press("hal", card, "Approve")
    chats.gateway.start()
    chats.until("hal", "That was hal.")
    chats.until_ended("hal", "delete_files: approved by Hal.")
    assert chats.runs("hal") == 1
    assert '"path": "hal"' in chats.cards("hal")[0][1]
    chats.press("hal", card, "Approve")
    chats.api.wait_for(lambda: chats.told("That is over. delete_files: approved."))
    assert chats.runs("hal") == 1
    assert len(chats.inputs("hal")) == 2


def test_invariant_8_two_cards_pressed_in_reverse_order_are_told_apart(chats):
    """B12, FC-APR-05: each decides about its own call, and the model knows which."""
    chats.say("ida", "delete ida")
    chats.api.wait_for(lambda: len(chats.cards("ida")) == 2)
    first, second = chats.cards("ida")
    chats.press("ida", second, "Approve")
    chats.until_sent()
    chats.press("ida", first, "Deny")
    chats.until("ida", "That was ida.")
    chats.until_ended("ida", "delete_files: denied by Ida.", "delete_files: approved by Ida.")
    assert (chats.runs("ida"), chats.runs("old")) == (0, 1)
    messages = chats.inputs("ida")[-1]
    told = [outputs(messages)[call] for call in calls(messages)]
    assert told[0].startswith("Not run: a person was asked")
    assert told[1] == "old is gone."


def test_fc_apr_04_a_stop_ends_a_card_also_one_of_a_process_that_was_killed(chats):
    """FC-APR-04: nothing runs, and the buttons are gone."""
    chats.ask("jon")
    chats.until_sent()
    chats.gateway.kill()
    chats.gateway.start()
    chats.say("jon", "/stop")
    chats.until_ended("jon", "delete_files: cancelled.")
    assert chats.runs("jon") == 0


def test_the_operator_decides_beside_a_running_gateway(chats):
    """B12: the gateway is told at once; a second decision is refused."""
    name = chats.ask("dot")
    decide = [DRAGOMAN, "approvals", "approve", name, "-m", chats.gateway.folder / "dragoman.toml"]
    environment = chats.gateway.environment
    done = subprocess.run(
        decide, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, f"{name} approved\n"), done.stderr
    chats.until("dot", "That was dot.")
    chats.until_ended("dot", "delete_files: approved.")
    assert chats.runs("dot") == 1
    done = subprocess.run(
        decide, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (1, f"{name} is approved already\n")


def test_invariant_7_a_tool_that_a_kill_cuts_off_is_not_run_again(chats):
    """B7, D7, D9: whatever the profile says of turns that were cut off, people are told."""
    hold = chats.gateway.folder / "hold"
    hold.touch()
    names = {who: chats.ask(who) for who in ("eve", "flo")}
    for who, name in names.items():
        chats.say(who, f"/approve {name}")
    chats.until_runs("eve", "flo")
    chats.gateway.kill()
    hold.unlink()
    chats.gateway.start()
    for who in ("eve", "flo"):
        chats.until(who, "restart")
        chats.say(who, "do you remember")
        chats.until(who, REMEMBERED)
        assert chats.runs(who) == 1
        messages = chats.inputs(who)[-1]
        assert set(outputs(messages)) == set(calls(messages))
        said = [text_of(one) for one in messages if one["role"] == "user"]
        assert said == [f"delete {who}", "do you remember"]


def test_a_question_that_nobody_answers_in_time_counts_as_no(chats):
    """B12: the model is told that nobody did."""
    chats.say("gil", "delete gil")
    chats.until("gil", "That was gil.")
    assert chats.runs("gil") == 0
    (told,) = outputs(chats.inputs("gil")[-1]).values()
    assert "nobody decided in time" in told
    chats.until_ended("gil", "delete_files: not decided in time.")
    verdicts = "SELECT verdict FROM approvals WHERE arguments LIKE '%gil%'"
    assert chats.rows(verdicts) == [("expired",)]
