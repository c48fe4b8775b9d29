"""Commands that people give in a chat: answered at once, and no model ever sees them."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import anyio
import attrs
import pytest

from dragoman import (
    ChatCommand,
    CommandCall,
    Finished,
    Place,
    PluginError,
    Role,
    TextBlock,
    hookimpl,
)
from dragoman.flow.commands import BUSY, FAILED_NOTICE, NOT_YOURS
from dragoman.flow.presses import NOT_ADMITTED
from dragoman.flow.throttle import TOO_MANY_NOTICE
from dragoman.manifest.model import Access, Profile
from dragoman.plugins.catalogue import Catalogue
from dragoman.testing import ScriptedRuntime, StubPlugin
from stage import Limits, can, gateway

pytestmark = pytest.mark.anyio


@attrs.define(eq=False)
class Commanding(StubPlugin):
    """A stub with chat commands."""

    commands: dict[str, Callable[[CommandCall], Awaitable[str]]] = attrs.field(factory=dict)
    rules: dict[str, Any] = attrs.field(factory=dict)
    """Who may give them, and when."""

    @hookimpl
    def dragoman_commands(self) -> Iterable[ChatCommand]:
        return [
            ChatCommand(name, f"does {name}", run, **self.rules)
            for name, run in self.commands.items()
        ]


async def dice(call):
    return f"{call.event.sender.id} in {call.profile} rolls {call.arguments or 'a six'}"


async def breaks(call):
    raise ValueError("what a person wrote")


async def hangs(call):
    await anyio.sleep_forever()
    return ""


async def says_nothing(call):
    return " "


async def test_a_command_is_answered_and_reaches_no_runtime():
    """E1: its event ends as handled, under the rule that let it in, with one answer."""
    async with gateway(Commanding(commands={"dice": dice})) as stage:
        await stage.platform.say("/dice", channel="1", user="7")
        await stage.platform.say("  /DICE  two dice\nat once ", channel="1", user="7")
        await stage.platform.until_count(2, "1")
        await stage.until_final()
        assert stage.platform.shown("1") == [
            "7 in default rolls a six",
            "7 in default rolls two dice\nat once",
        ]
        assert await stage.states("inbound_events", "reason") == ["command /dice"] * 2
        assert stage.runtime.requests == []


async def test_what_names_no_command_is_an_ordinary_message():
    async with gateway(Commanding(commands={"dice": dice})) as stage:
        for text in ("/unknown x", "/ dice", "say /dice", "/dicey", "[forwarded from A]\n/dice"):
            await stage.platform.say(text)
            await stage.platform.until_shown(text)


async def test_help_lists_the_commands():
    async with gateway(Commanding(commands={"zoo": dice, "dice": dice})) as stage:
        await stage.platform.say("/help")
        [shown] = await stage.platform.until_count(1)
        assert [line.split()[0] for line in shown.splitlines()] == [
            "/approve",
            "/deny",
            "/dice",
            "/link",
            "/model",
            "/new",
            "/profile",
            "/rename",
            "/resume",
            "/retry",
            "/sessions",
            "/status",
            "/stop",
            "/undo",
            "/usage",
            "/whoami",
            "/zoo",
            "/help",
        ]


async def test_a_stranger_commands_nothing():
    """Invariant 15: commands pass the same door as messages."""
    given = []

    async def note(call):
        given.append(call)
        return "x"

    async with gateway(Commanding(commands={"note": note}), access=Access()) as stage:
        await stage.platform.say("/note")
        await stage.until("inbound_events", ["refused"])
    assert given == []


@pytest.mark.parametrize("run", [breaks, hangs])
async def test_a_command_that_fails_says_so_and_stops_nobody(run, caplog):
    """Invariants 11 and 12: one line for the person, no words of theirs in the log."""
    plugin = Commanding(commands={"bad": run})
    async with gateway(plugin, limits=Limits(hook_timeout=0.05)) as stage:
        await stage.platform.say("/bad", channel="1")
        await stage.platform.say("hello", channel="2")
        await stage.platform.until_shown("hello", "2")
        await stage.platform.until_shown(FAILED_NOTICE, "1")
    assert "command /bad" in caplog.text
    assert "what a person wrote" not in caplog.text


async def test_a_blank_answer_shows_nothing():
    async with gateway(Commanding(commands={"quiet": says_nothing})) as stage:
        await stage.platform.say("/quiet")
        await stage.until("inbound_events", ["handled"])
        assert stage.platform.shown() == []


async def test_two_plugins_cannot_have_one_command():
    catalogue = Catalogue(
        objects={name: Commanding(commands={"dice": dice}) for name in ("one", "two")}
    )
    assert set(catalogue.chat_commands(["one"])) == {"dice"}
    with pytest.raises(PluginError, match="/dice is taken by plugin 'one'"):
        catalogue.chat_commands(["one", "two"])


@pytest.mark.parametrize("name", ["Dice", "", "two words", "x" * 33, "/dice"])
async def test_a_name_that_nobody_could_type_is_refused(name):
    with pytest.raises(ValueError, match="name"):
        ChatCommand(name, "x", dice)


async def test_a_long_answer_of_a_command_is_shown_in_parts():
    """Invariant 3: all of it, in order, owed with the end of its event."""

    async def report(call):
        return "\n".join(f"line {number} of the report" for number in range(600))

    async with gateway(Commanding(commands={"report": report})) as stage:
        await stage.platform.say("/report")
        await stage.until_final()
        shown = stage.platform.shown()
        assert len(shown) > 2
        assert "\n".join(shown) == await report(None)
        assert set(await stage.states("deliveries")) == {"delivered"}


async def test_a_command_is_given_by_those_whose_role_may():
    """B11: others are told, the log says so once, and help does not show it to them."""
    given = []

    async def note(call):
        given.append(call.event.sender.id)
        return "noted"

    access = Access(operators=("stub:8",), owners=("stub:9",), users=("stub:7",))
    plugin = Commanding(commands={"note": note}, rules={"role": Role.OPERATOR})
    async with gateway(plugin, access=access) as stage:
        for user in ("7", "8", "9"):
            await stage.platform.say("/note", channel=user, user=user)
            await stage.platform.say("/help", channel=user, user=user)
            await stage.platform.until_count(2, user)
        await stage.until_final()
        assert given == ["8", "9"]
        assert stage.platform.shown("7")[0] == NOT_YOURS
        helps = [stage.platform.shown(user)[1] for user in ("7", "8", "9")]
        assert ["/note" in text for text in helps] == [False, True, True]
        assert await stage.states("inbound_events", "reason") == [
            "command /note is for operators",
            "command /help",
            *["command /note", "command /help"] * 2,
        ]


async def test_a_command_that_cannot_run_beside_a_turn_is_refused_while_one_runs():
    """B11: its busy policy is part of the table of commands."""
    plugin = Commanding(commands={"dice": dice}, rules={"busy": "refuse"})
    gate = anyio.Event()

    async def slow(request, host):
        await gate.wait()
        yield TextBlock("1", "done")
        yield Finished()

    plugin.runtimes["scripted"] = ScriptedRuntime(slow)
    async with gateway(plugin) as stage:
        await stage.platform.say("work", channel="1", user="7")
        await stage.platform.say("/dice", channel="1", user="7")
        await stage.platform.until_count(1, "1")
        assert BUSY in stage.platform.shown("1")
        gate.set()
        await stage.until_final()
        await stage.platform.say("/dice", channel="1", user="7")
        await stage.until_final()
        assert stage.platform.shown("1")[-1] == "7 in default rolls a six"


@pytest.mark.parametrize(
    ("allow", "answered"),
    [
        (("users",), ["7", "8", "9"]),
        (("operators",), ["8", "9"]),
        (("owners",), ["9"]),
        (("stub:7", "owners"), ["7", "9"]),
        ((), []),
    ],
)
async def test_a_profile_has_a_rule_of_its_own(allow, answered):
    """B10: whom the deployment lets in is let in where the profile lets them, too."""
    access = Access(operators=("stub:8",), owners=("stub:9",), users=("stub:7",))
    profiles = {"default": Profile(runtime="scripted", allow=allow)}
    async with gateway(Commanding(), access=access, profiles=profiles) as stage:
        for user in ("7", "8", "9"):
            await stage.platform.say("/whoami", channel=user, user=user)
        await stage.until_final()
        assert [user for user in ("7", "8", "9") if stage.platform.shown(user)] == answered
        assert await stage.states("inbound_events", "state") == [
            "handled" if user in answered else "refused" for user in ("7", "8", "9")
        ]


async def test_a_command_that_waits_is_carried_out_when_nothing_runs_any_more():
    """B11: it is received and durable meanwhile, and carried out once."""
    plugin = Commanding(commands={"dice": dice}, rules={"busy": "queue"})
    gate = anyio.Event()

    async def slow(request, host):
        await gate.wait()
        yield TextBlock("1", "done")
        yield Finished()

    plugin.runtimes["scripted"] = ScriptedRuntime(slow)
    async with gateway(plugin) as stage:
        for text in ("work", "/dice", "more work"):
            await stage.platform.say(text, channel="1", user="7")
        await stage.until("inbound_events", ["adopted", "received", "queued"])
        gate.set()
        await stage.until_final()
        assert stage.platform.shown("1") == ["done", "done", "7 in default rolls a six"]


async def test_a_command_that_waits_is_carried_out_by_the_next_process(tmp_path):
    """Invariant 3: one that waited when the gateway ended is not lost."""

    async def slow(request, host):
        await anyio.sleep_forever()
        yield Finished()

    def waiting():
        plugin = Commanding(commands={"dice": dice}, rules={"busy": "queue"})
        plugin.runtimes["scripted"] = ScriptedRuntime(slow)
        return plugin

    async with gateway(waiting(), store=tmp_path / "store.db") as stage:
        await stage.platform.say("work", channel="1", user="7")
        await stage.platform.say("/dice", channel="1", user="7")
        await stage.until("inbound_events", ["adopted", "received"])
    async with gateway(waiting(), store=tmp_path / "store.db") as stage:
        await stage.until_final()
        assert "7 in default rolls a six" in stage.platform.shown("1")


@pytest.mark.parametrize(
    ("text", "rules", "user", "told", "state"),
    [
        ("/dice", {}, "8", NOT_ADMITTED, "refused"),
        ("/nothing", {}, "8", NOT_ADMITTED, "refused"),
        ("/pair", {}, "8", NOT_ADMITTED, "refused"),
        ("/dice", {"role": Role.OPERATOR}, "7", NOT_YOURS, "refused"),
        ("/nothing", {}, "7", "", "handled"),
        ("/dice", {}, "7", None, "handled"),
    ],
)
@pytest.mark.parametrize("answers", [True, False])
async def test_fc_aut_03_who_may_not_is_told_so_alone(text, rules, user, told, state, answers):
    """FC-AUT-03: a command that waits for a word gets one that only its giver sees, whatever it
    names; where the platform has no such word, strangers get none. Nor is it a way to a code."""
    plugin = Commanding(commands={"dice": dice, "nothing": says_nothing}, rules=rules)
    plugin.platform().capabilities = can(answers=answers)
    async with gateway(plugin, access=Access(users=("stub:7",), pairing=True)) as stage:
        await stage.platform.say(text, user=user, answerable=True)
        await stage.until_final()
        await stage.quiet()
        assert await stage.states("inbound_events") == [state]
        assert stage.platform.answered == [("1", told)] * (answers and told is not None)
        public = told is None or (told == NOT_YOURS and not answers)
        assert bool(stage.platform.shown("1")) == public


async def test_a_command_that_waits_for_a_word_gets_one_however_it_ends():
    """FC-AUT-03: nothing that only its giver should know of is left open where all see it."""
    plugin = Commanding(commands={"dice": dice})
    plugin.platform().capabilities = can(answers=True)
    limits = Limits(grace=0.5, person_rate=1)
    profile = Profile(runtime="scripted", trigger="off")
    async with gateway(plugin, limits=limits, profiles={"default": profile}) as stage:
        await stage.platform.say("/dice", place=Place.GROUP, answerable=True)
        for _ in range(3):
            await stage.platform.say("/dice", channel="2", user="7", answerable=True)
        await stage.until_final()
        await stage.quiet()
        assert await stage.states("inbound_events") == ["ignored", "handled", *["refused"] * 2]
        assert sorted(stage.platform.answered) == [("1", ""), ("3", TOO_MANY_NOTICE), ("4", "")]
        assert stage.platform.shown("1") == []
        assert stage.platform.shown("2") == ["7 in default rolls a six"]
