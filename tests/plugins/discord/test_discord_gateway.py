"""The gateway protocol without a network: what each frame and each moment asks for."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman_discord.gateway import SENDS, Dispatch, Gateway, Leave, Send, Session

HELLO = {"op": 10, "d": {"heartbeat_interval": 40_000}}
READY = {
    "op": 0,
    "t": "READY",
    "s": 1,
    "d": {"session_id": "abc", "resume_gateway_url": "wss://resume"},
}
quick = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))


def begun(session: Session | None = None, jitter: float = 0.5) -> Gateway:
    return Gateway("token", 512, session, jitter)


def test_a_new_session_is_begun_and_an_old_one_resumed() -> None:
    [hello] = begun().receive(HELLO, 0.0)
    assert isinstance(hello, Send)
    assert (hello.frame["op"], hello.frame["d"]["intents"]) == (2, 512)
    [resume] = begun(Session("abc", "wss://resume", 7)).receive(HELLO, 0.0)
    assert isinstance(resume, Send)
    assert resume.frame == {"op": 6, "d": {"token": "token", "session_id": "abc", "seq": 7}}


def test_the_first_heartbeat_comes_after_a_random_part_of_the_interval() -> None:
    gateway = begun(jitter=0.25)
    gateway.receive(HELLO, 100.0)
    assert gateway.beat_at == pytest.approx(110.0)
    assert gateway.tick(109.9) == []
    assert gateway.tick(110.0) == [Send({"op": 1, "d": None})]
    assert gateway.beat_at == pytest.approx(150.0)
    assert isinstance(gateway.tick(150.0)[0], Leave), "the last one was not answered"


def test_heartbeats_tell_what_is_stored_and_no_more() -> None:
    """Invariant 1."""
    gateway = begun()
    gateway.receive(HELLO, 0.0)
    [ready] = gateway.receive(READY, 0.0)
    assert ready == Dispatch("READY", READY["d"], 1, "abc:1")
    gateway.receive({"op": 0, "t": "MESSAGE_CREATE", "s": 2, "d": {}}, 0.0)
    assert gateway.receive({"op": 1}, 1.0) == [Send({"op": 1, "d": None})]
    gateway.stored(1)
    assert gateway.receive({"op": 1}, 2.0) == [Send({"op": 1, "d": 1})]
    assert gateway.session == Session("abc", "wss://resume", 1)


def test_an_invalid_session_is_forgotten_unless_it_can_be_resumed() -> None:
    kept, lost = (begun(Session("abc", "wss://resume", 7), jitter=1.0) for _ in range(2))
    [again] = kept.receive({"op": 9, "d": True}, 0.0)
    [anew] = lost.receive({"op": 9, "d": False}, 0.0)
    assert kept.session is not None
    assert lost.session is None
    assert isinstance(again, Leave)
    assert isinstance(anew, Leave)
    assert (again.pause, anew.pause) == (5.0, 5.0)
    assert kept.receive({"op": 7}, 0.0) == [Leave("the server asks to connect anew")]


@pytest.mark.parametrize("code", [None, 1006, 4000, 4001, 4002, 4005, 4008])
def test_most_closings_leave_the_session(code: int | None) -> None:
    gateway = begun(Session("abc", "wss://resume", 7))
    assert gateway.closed(code) == ""
    assert gateway.session is not None


@pytest.mark.parametrize("code", [4003, 4007, 4009])
def test_some_closings_end_the_session(code: int) -> None:
    gateway = begun(Session("abc", "wss://resume", 7))
    assert gateway.closed(code) == ""
    assert gateway.session is None


@pytest.mark.parametrize("code", [4004, 4010, 4011, 4012, 4013, 4014])
def test_some_closings_are_for_good_and_say_why(code: int) -> None:
    assert begun().closed(code)


def test_a_server_that_asks_without_end_is_not_answered_without_end() -> None:
    """Discord ends a connection that sends more than 120 frames in a minute."""
    gateway = begun()
    answers = [gateway.receive({"op": 1}, number / 100) for number in range(300)]
    assert sum(map(len, answers)) == SENDS
    assert gateway.receive({"op": 1}, 63.1) != []


FRAMES = st.one_of(
    st.fixed_dictionaries(
        {"op": st.integers(-1, 12)},
        optional={
            "d": st.one_of(
                st.none(),
                st.booleans(),
                st.dictionaries(
                    st.sampled_from(["heartbeat_interval", "session_id", "resume_gateway_url"]),
                    st.one_of(
                        st.integers(-1, 100_000), st.sampled_from(["", "a", "wss://x"]), st.none()
                    ),
                ),
            ),
            "s": st.one_of(st.none(), st.integers(0, 50), st.just("7")),
            "t": st.sampled_from(["READY", "RESUMED", "MESSAGE_CREATE", "", None]),
        },
    ),
    st.just({}),
)


@quick
@given(st.lists(st.tuples(FRAMES, st.floats(0, 50), st.booleans()), max_size=20))
def test_whatever_comes_the_sequence_told_was_stored(
    steps: list[tuple[dict[str, Any], float, bool]],
) -> None:
    """Invariant 1, for any frames in any order; and nothing raises."""
    gateway, now, stored = begun(), 0.0, 0
    for frame, pause, store in steps:
        now += pause
        for action in [*gateway.receive(frame, now), *gateway.tick(now)]:
            if isinstance(action, Dispatch) and store:
                gateway.stored(action.seq)
                stored = max(stored, action.seq)
            if isinstance(action, Send) and action.frame["op"] == 1:
                assert (action.frame["d"] or 0) <= stored
            if isinstance(action, Leave):
                assert 0 <= action.pause <= 5
        if gateway.session is not None:
            assert gateway.session.seq <= stored
