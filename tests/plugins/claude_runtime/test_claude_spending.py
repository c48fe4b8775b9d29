"""What turns use, by the totals of the real program, and when they may not begin."""

import attrs
import pytest
from claude_agent_sdk import ResultMessage

from dragoman import FailureKind, Usage
from dragoman_claude.spending import Budget, Calls, Meter, Spent
from plugins.claude_runtime.recordings import Played, messages

MODEL = "claude-sonnet-5"


def result(**totals):
    usage = {model: _counts(*counts) for model, counts in totals.items()}
    return ResultMessage(
        "success", 1, 1, is_error=False, num_turns=1, session_id="s", model_usage=usage
    )


def _counts(given, said, cost, cached=0, written=0, thought=0):
    return {
        "inputTokens": given,
        "outputTokens": said,
        "cacheReadInputTokens": cached,
        "cacheCreationInputTokens": written,
        "thinkingTokens": thought,
        "costUSD": cost,
    }


def used(scene, number=1, meter=None):
    translator = Played(scene, number).translator
    meter = meter or Meter()
    if translator.reset:
        meter.reset()
    return meter.read(translator.result, translator.calls)


def test_each_turn_of_a_program_has_used_the_difference():
    """D14: the program's totals grow from turn to turn."""
    meter = Meter()
    first, second = used("live", 1, meter), used("live", 2, meter)
    for [usage] in (first, second):
        assert attrs.evolve(usage, cost=None) == Usage(1, 10, 5, MODEL)
        assert usage.cost == pytest.approx(0.00007)
    assert meter.cost == pytest.approx(0.00014)


def test_what_a_broken_connection_has_cost_is_counted():
    [usage] = used("cut_text")
    assert (usage.requests, usage.input_tokens, usage.output_tokens) == (2, 20, 11)


def test_a_turn_that_failed_or_was_stopped_has_used_something_too():
    """D14: the result's own counts are zero then."""
    assert used("budget")[0].cost == pytest.approx(0.80005)
    assert (used("stopped_text")[0].input_tokens, used("max_turns")[0].output_tokens) == (10, 5)
    assert used("status_500") == []


def test_helpers_and_summing_up_are_counted():
    assert (used("helper")[0].requests, used("helper")[0].input_tokens) == (3, 40)
    meter = Meter()
    used("compacted", 1, meter)
    [usage] = used("compacted", 2, meter)
    assert (usage.input_tokens, usage.output_tokens) == (20, 10)


def test_a_turn_that_goes_on_after_a_pause_has_used_what_came_since():
    """The totals go on in a program that resumes, where the transcript has them."""
    [before, after] = [one for one in messages("deferred") if isinstance(one, ResultMessage)]
    meter = Meter()
    assert meter.read(before, Calls())[0].input_tokens == 10
    assert Meter(meter.last).read(after, Calls())[0].input_tokens == 10


def test_an_emptied_conversation_begins_at_nothing():
    meter = Meter()
    assert used("cleared", 1, meter)[0].input_tokens == 10
    assert used("cleared", 2, meter) == []
    assert used("cleared", 3, meter)[0].input_tokens == 10


def test_totals_that_are_less_than_before_have_begun_anew():
    """D14: another version counts from its own start, and nothing of it may be billed twice."""
    meter = Meter()
    meter.read(result(a=(100, 10, 1.0), b=(5, 5, 0.5)), Calls())
    again = meter.read(result(a=(120, 2, 0.2)), Calls())
    assert [(one.model, one.input_tokens, one.cost) for one in again] == [("a", 120, 0.2)]
    assert meter.cost == 0.2


def test_cached_tokens_are_part_of_the_input():
    [usage] = Meter().read(result(a=(10, 20, 0.1, 300, 4000, 7)), Calls())
    assert (usage.input_tokens, usage.cached_tokens, usage.reasoning_tokens) == (4310, 300, 7)


def test_without_a_result_counts_what_was_seen():
    """A program that was killed says nothing of what it has used."""
    calls = Calls()
    calls.begin("m", {"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 1})
    calls.grow({"output_tokens": 7})
    calls.grow({"output_tokens": 7})
    calls.begin("m", {"input_tokens": 20})
    calls.begin(None, None)
    assert calls.usage()[0] == Usage(2, 35, 7, "m", cached_tokens=5)
    assert Meter().read(None, calls) == calls.usage()


def test_calls_under_another_name_are_not_forgotten():
    calls = Calls()
    calls.begin("a-2026", {})
    calls.begin("a", {})
    calls.helper("id", "a")
    calls.helper("id", "a")
    calls.helper(None, "a")
    assert [one.requests for one in Meter().read(result(a=(1, 1, 0.1)), calls)] == [3]


def test_what_a_session_has_cost_is_kept():
    totals = {"claude-sonnet-5": {"costUSD": 0.75}}
    spent = Spent().plus([Usage(cost=0.5), Usage(cost=None)], {}).plus([Usage(cost=0.25)], totals)
    assert Spent.of(["something else", spent.item()]) == Spent(0.75, totals)
    for records in ([], ["no json"], ["[]"], ['{"cost": "much"}'], ['{"cost": -1}']):
        assert Spent.of(records) == Spent()


def test_a_turn_may_not_begin_once_the_session_has_spent_it_all():
    """D14: a program that resumes such a session would be paid, and answer nothing."""
    budget = Budget(session=1.0)
    assert budget.refusal(Spent(0.99)) is None
    refusal = budget.refusal(Spent(1.0))
    assert refusal is not None
    assert (refusal.kind, refusal.detail) == (
        FailureKind.BUDGET,
        "the session has cost $1.00 of $1.00",
    )
    assert Budget().refusal(Spent(1e9)) is None


def test_a_program_is_told_its_ceiling_in_its_own_counting():
    assert Budget().ceiling(Spent(3), 2) is None
    assert Budget(session=5).ceiling(Spent(3), 2) == 4
    assert Budget(turn=1).ceiling(Spent(3), 2) == 3
    assert Budget(turn=1, session=3.5).ceiling(Spent(3), 0) == 0.5
