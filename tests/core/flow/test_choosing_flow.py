"""Profiles and models that people choose in a chat: what is offered there, exactly, and no more."""

import itertools

import attrs
import pytest

from dragoman import (
    ApprovalRequested,
    Finished,
    Kind,
    Paused,
    Place,
    RuntimeCapabilities,
    Scope,
    ScopeRule,
    TextBlock,
)
from dragoman.flow.commands import BUSY, NOT_YOURS
from dragoman.manifest.model import Access, Profile, Route
from dragoman.testing import ScriptedRuntime, StubPlugin
from stage import eventually, gateway

pytestmark = pytest.mark.anyio

NUMBERS = itertools.count()
"""Ids of messages: no later process has those of an earlier one."""
PLACES = ("1", "2", "3")
ACCESS = Access(
    operators=("stub:9",), users=("stub:7",), channels=tuple(f"stub:{one}" for one in PLACES)
)


async def speaks(request, host):
    said = f"{request.profile} {request.model or '-'}: {request.inputs[0].text}"
    if request.saved is None and request.inputs[0].text == "ask":
        yield ApprovalRequested("c1", "look", "{}")
        yield Paused("state")
        return
    yield TextBlock("1", said)
    yield Finished()


def manifest(*offered, **profile):
    """A deployment with three profiles, and one route that offers some of them."""
    plugin = StubPlugin()
    can = RuntimeCapabilities(stream=True, models=True, approve=True, resume=True)
    plugin.runtimes["scripted"] = ScriptedRuntime(speaks, capabilities=can)
    made = Profile(runtime="scripted", **profile)
    return {
        "plugin": plugin,
        "access": ACCESS,
        "profiles": {"default": made, "fast": made, "deep": made},
        "routes": (Route(profile="default", profiles=offered),),
    }


async def answers(stage, text, channel="1", thread="", **where):
    """Say something and return what is shown for it."""
    before = len(stage.platform.shown(channel, thread))
    where["native_id"] = f"n{next(NUMBERS)}"
    await stage.platform.say(text, channel=channel, thread=thread, **where)

    async def count():
        return len(stage.platform.shown(channel, thread)) - before

    await eventually(count, 1, limit=10)
    return stage.platform.shown(channel, thread)[before]


async def test_a_profile_is_chosen_for_a_place_and_has_a_session_of_its_own():
    """A7: what was said stays with the profile that it was said to; other places are as before."""
    async with gateway(**manifest("fast")) as stage:
        assert await answers(stage, "a") == "default -: a"
        assert await answers(stage, "/profile") == (
            "Profiles here: `default`, `fast`. In use: `default`."
        )
        assert "From now on `fast`" in await answers(stage, "/profile fast")
        assert await answers(stage, "b") == "fast -: b"
        assert await answers(stage, "b", "2") == "default -: b"
        assert await answers(stage, "/profile fast") == "`fast` answers here already."
        assert "From now on `default`" in await answers(stage, "/profile default")
        assert await answers(stage, "c") == "default -: c"
        sessions = [one.session_id for one in stage.runtime.requests]
        assert sessions[0] == sessions[3]
        assert len(set(sessions)) == 3
        assert await stage.rows("SELECT * FROM component_values WHERE component = 'choices'") == []


@pytest.mark.parametrize(
    "name", ["deep", "Fast", "fas", "fast ", "f\u0430st", "fast deep", "`fast`", "*"]
)
async def test_only_what_is_offered_is_chosen_by_its_exact_name(name):
    """Look-alikes are refused, and so is every profile that the route does not offer."""
    async with gateway(**manifest("fast")) as stage:
        told = await answers(
            stage, f"/profile {name}\u200b" if name == "fast " else f"/profile {name}"
        )
        assert told == "There is no such profile here. You can choose among `default`, `fast`."
        assert await answers(stage, "a") == "default -: a"


async def test_in_groups_an_operator_chooses_for_all():
    """A7: everybody may look, and whoever may not choose is told so."""
    group = {"place": Place.GROUP}
    async with gateway(**manifest("fast", models=("big",))) as stage:
        assert await answers(stage, "/profile fast", user="7", **group) == NOT_YOURS
        assert await answers(stage, "/model big", user="7", **group) == NOT_YOURS
        assert "`default`, `fast`" in await answers(stage, "/profile", user="7", **group)
        assert "From now on" in await answers(stage, "/profile fast", user="9", **group)
        assert "`big`" in await answers(stage, "/model big", user="9", **group)
        assert await answers(stage, "a", user="7", **group) == "fast big: a"


async def test_nobody_chooses_a_profile_that_would_not_answer_him():
    made = manifest("fast")
    made["profiles"]["fast"] = attrs.evolve(made["profiles"]["fast"], allow=("operators",))
    async with gateway(**made) as stage:
        assert (
            await answers(stage, "/profile", user="7")
            == "Profiles here: `default`. In use: `default`."
        )
        assert "no such profile" in await answers(stage, "/profile fast", user="7")
        assert "From now on" in await answers(stage, "/profile fast", user="9")


async def test_who_may_not_have_his_choice_any_more_is_answered_by_the_routes_own(tmp_path):
    path, made = tmp_path / "store.db", manifest("fast")
    async with gateway(**made, store=path) as stage:
        await answers(stage, "/profile fast", user="7")
    made = manifest("fast")
    made["profiles"]["fast"] = attrs.evolve(made["profiles"]["fast"], allow=("operators",))
    async with gateway(**made, store=path) as stage:
        assert await answers(stage, "a", user="7") == "default -: a"


async def test_a_choice_outlives_the_process_until_its_route_offers_it_no_more(tmp_path, caplog):
    path = tmp_path / "store.db"
    async with gateway(**manifest("fast", models=("big",)), store=path) as stage:
        await answers(stage, "/profile fast")
        await answers(stage, "/model big")
        assert await answers(stage, "a") == "fast big: a"
    async with gateway(**manifest("fast", models=("big",)), store=path) as stage:
        assert await answers(stage, "b") == "fast big: b"
    async with gateway(**manifest("deep"), store=path) as stage:
        assert await answers(stage, "c") == "default -: c"
        assert "profile fast, chosen in stub::1:, is not offered there now" in caplog.text
        assert "a chosen model is not offered any more" in caplog.text
    async with gateway(**manifest("fast", models=("big",)), store=path) as stage:
        assert await answers(stage, "d") == "default -: d"


async def test_a_choice_of_a_channel_is_that_of_its_threads_unless_they_have_their_own():
    group = {"place": Place.GROUP, "user": "9"}
    async with gateway(**manifest("fast", "deep")) as stage:
        await answers(stage, "/profile fast", **group)
        assert await answers(stage, "a", thread="t", **group) == "fast -: a"
        await answers(stage, "/profile default", thread="t", **group)
        assert await answers(stage, "b", thread="t", **group) == "default -: b"
        await answers(stage, "/profile deep", thread="u", **group)
        assert await answers(stage, "c", thread="u", **group) == "deep -: c"
        assert await answers(stage, "d", **group) == "fast -: d"


async def test_a_thread_may_be_called_as_what_is_chosen(tmp_path):
    path = tmp_path / "store.db"
    where = {"place": Place.GROUP, "user": "9", "thread": "model"}
    async with gateway(**manifest("fast"), store=path) as stage:
        await answers(stage, "/profile fast", **where)
    async with gateway(**manifest("fast"), store=path) as stage:
        assert await answers(stage, "a", **where) == "fast -: a"


async def test_a_route_of_a_person_does_not_end_what_was_chosen_for_the_place():
    made = manifest("fast")
    made["routes"] += (Route(profile="deep", user="7"),)
    group = {"place": Place.GROUP}
    async with gateway(**made) as stage:
        await answers(stage, "/profile fast", user="9", **group)
        assert await answers(stage, "a", user="7", **group) == "deep -: a"
        assert await answers(stage, "b", user="9", **group) == "fast -: b"


async def test_a_profile_is_not_changed_under_a_turn_that_waits_for_a_person():
    """B11: its `/stop` would not be found any more; also not from outside its thread."""
    group = {"place": Place.GROUP, "user": "9"}
    async with gateway(**manifest("fast")) as stage:
        assert "May I run" in await answers(stage, "ask", thread="t", **group)
        for thread in ("t", ""):
            assert await answers(stage, "/profile fast", thread=thread, **group) == BUSY
        assert "From now on" in await answers(stage, "/profile fast", thread="u", **group)
        assert await answers(stage, "/stop", thread="t", **group) == "Stopped."
        assert "From now on" in await answers(stage, "/profile fast", thread="t", **group)


async def test_a_model_is_chosen_for_a_conversation():
    """B11: two conversations differ; a profile remembers its own; only exact names count."""
    async with gateway(**manifest("fast", models=("big", "org/small-2"))) as stage:
        assert await answers(stage, "/model") == (
            "Models here: `big`, `org/small-2`. In use: the profile's own model."
        )
        assert "no such model" in await answers(stage, "/model Big")
        assert "`big` answers" in await answers(stage, "/model big")
        assert await answers(stage, "/model") == "Models here: `big`, `org/small-2`. In use: `big`."
        assert await answers(stage, "/model org/small-2", "2") == (
            "From the next message on `org/small-2` answers here."
        )
        assert await answers(stage, "a") == "default big: a"
        assert await answers(stage, "a", "2") == "default org/small-2: a"
        await answers(stage, "/profile fast")
        assert await answers(stage, "b") == "fast -: b"
        await answers(stage, "/profile default")
        assert "the profile's own model" in await answers(stage, "/model default")
        assert await answers(stage, "c") == "default -: c"


async def test_a_model_is_chosen_for_all_that_shares_the_session():
    """With the scope `channel` a choice in one thread counts in the others."""
    rule = ScopeRule(dm=Scope.CHANNEL, group=Scope.CHANNEL)
    async with gateway(**manifest(models=("big",), scope=rule)) as stage:
        await answers(stage, "/model big", thread="t")
        assert await answers(stage, "a", thread="u") == "default big: a"


async def test_without_models_there_is_no_choice():
    async with gateway(**manifest()) as stage:
        assert await answers(stage, "/model") == "There is no choice of models here."
        assert await answers(stage, "/model big") == "There is no choice of models here."
        assert await answers(stage, "/profile") == "Profiles here: `default`. In use: `default`."


async def test_a_choice_goes_with_a_channel_that_moves():
    """A1: the new id has what was chosen under the old one."""
    async with gateway(**manifest("fast")) as stage:
        await answers(stage, "/profile fast")
        await stage.platform.say("", kind=Kind.MOVED, data="2")
        assert await answers(stage, "a", "2") == "fast -: a"
