"""A model that refuses because its context is full: the history does not grow by what failed."""

import pytest

from dragoman import Failed, FailureKind, Finished, RuntimeFailed, TextBlock, TextDelta
from dragoman.flow.registry import OWN
from dragoman.testing import ScriptedRuntime, StubPlugin
from stage import gateway

pytestmark = pytest.mark.anyio

WINDOW = 100
"""Characters that the model takes, history and question together."""
NOTICE = "*(with this message the conversation is too long for the model; /new begins a new one)*"


async def raises(request, host):
    """The model refuses the call."""
    raise RuntimeFailed(FailureKind.CONTEXT_OVERFLOW, "maximum context length")
    yield


async def refuses_late(request, host):
    """The model refuses the second call, after a text, a tool and a compaction that did not help."""
    yield TextDelta("1", "Let me look.")
    await host.records("items").append(["a tool's output"])
    await host.records("items").new_generation([request.inputs[-1].text])
    await host.records("state").append(["compacted"])
    yield Failed(FailureKind.CONTEXT_OVERFLOW, "maximum context length")


def model(refuse):
    """A runtime whose model answers as long as everything fits in its window."""

    async def script(request, host):
        items = await host.records("items").read()
        if sum(map(len, items)) > WINDOW:
            async for event in refuse(request, host):
                yield event
            return
        await host.records("items").append(["answer"])
        yield TextBlock("1", f"{len(items)} items")
        yield Finished()

    return StubPlugin(runtimes={"scripted": ScriptedRuntime(script, namespace="items")})


async def history(stage):
    return await stage.rows(
        "SELECT namespace, generation, number, item FROM records ORDER BY 1, 2, 3"
    )


@pytest.mark.parametrize(
    ("refuse", "shown"), [(raises, NOTICE), (refuses_late, f"Let me look.\n\n{NOTICE}")]
)
async def test_fc_sto_05_five_turns_that_overflow_leave_the_history_as_it_was(refuse, shown):
    """FC-STO-05: one clear text for each, and what is short enough is answered again."""
    async with gateway(model(refuse)) as stage:
        await stage.platform.say("hello")
        await stage.until_final()
        before = await history(stage)
        for _ in range(5):
            await stage.platform.say("x" * WINDOW)
            await stage.until_final()
            assert await history(stage) == before
        await stage.platform.say("short")
        await stage.until_final()
        assert stage.platform.shown() == ["1 items", *[shown] * 5, "3 items"]
        items = [item for *_, item in await history(stage)]
        assert items == ["hello", "answer", "short", "answer"]
        assert await stage.states("agent_runs", "failure") == [
            None,
            *["context_overflow"] * 5,
            None,
        ]


async def test_fc_sto_05_the_command_that_the_text_names_ends_the_overflow():
    """FC-STO-05: a history that fills the window by itself is left behind by it."""
    assert "new" in {entry.name for entry in OWN}
    async with gateway(model(raises)) as stage:
        await stage.platform.say("x" * (WINDOW - 10))
        await stage.until_final()
        await stage.platform.say("more than ten")
        await stage.until_final()
        await stage.platform.say("/new")
        await stage.until_final()
        await stage.platform.say("more than ten")
        await stage.until_final()
        assert stage.platform.shown() == [
            "1 items",
            NOTICE,
            "A new conversation begins.",
            "1 items",
        ]


async def test_fc_sto_05_other_failures_stay_in_the_history():
    """Only what the model cannot take is taken back: people may go on from what failed otherwise."""

    async def script(request, host):
        yield Failed(FailureKind.RATE_LIMIT, "429")

    runtime = ScriptedRuntime(script, namespace="items")
    async with gateway(StubPlugin(runtimes={"scripted": runtime})) as stage:
        await stage.platform.say("hello")
        await stage.until_final()
        assert [item for *_, item in await history(stage)] == ["hello"]
