"""`dragoman usage`: what turns used, summed by what one asks for."""

import pytest

COLUMNS = """
    INSERT INTO turn_usage (turn_id, model, requests, input_tokens, cached_tokens, output_tokens,
        reasoning_tokens, cost) VALUES (?, ?, 1, 10, 4, 5, 2, ?)
"""


@pytest.fixture
def busy(deployment):
    """Three more turns: of another day, another profile, and another person."""
    deployment.sql(
        """
        INSERT INTO platform_sessions (id, conversation_id, profile, runtime, created_at)
        SELECT 'ops', conversation_id, 'ops', runtime, created_at
        FROM platform_sessions
        """
    )
    for number, (session, later, sender) in enumerate(
        [(deployment.session, 86_400, "7"), ("ops", 0, "7"), (deployment.session, 0, "8")], 2
    ):
        turn = f"turn_{number}"
        deployment.sql(
            """
            INSERT INTO agent_runs (id, session_id, state, fence, owner, lease_until, started_at)
            SELECT ?, ?, 'succeeded', 1, '', 0, started_at + ? FROM agent_runs WHERE id = 'turn_1'
            """,
            turn,
            session,
            later,
        )
        deployment.sql(
            """
            INSERT INTO inbound_events (platform, native_id, lane, state, received_at, event,
                turn_id)
            SELECT platform, ?, lane, 'answered', received_at,
                json_set(event, '$.sender.id', ?, '$.sender.workspace', ?), ?
            FROM inbound_events WHERE id = 1
            """,
            turn,
            sender,
            "T1" if sender == "8" else "",
            turn,
        )
        deployment.sql(COLUMNS, turn, "large", None)
        deployment.sql(COLUMNS, turn, "small", 0.25)
    return deployment


def sums(found, *columns):
    return {tuple(row[name] for name in columns): row["input_tokens"] for row in found["usage"]}


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("day", {("2026-03-04",): 51, ("2026-03-05",): 20}),
        ("profile", {("default",): 51, ("ops",): 20}),
        ("person", {("console:7",): 51, ("console:T1:8",): 20}),
        ("model", {("large",): 41, ("small",): 30}),
        (
            "model,person",
            {
                ("large", "console:7"): 31,
                ("small", "console:7"): 20,
                ("large", "console:T1:8"): 10,
                ("small", "console:T1:8"): 10,
            },
        ),
    ],
)
def test_usage_is_summed_by_what_one_asks_for(busy, by, expected):
    """D14: a turn's person is who began it, by immutable id."""
    assert sums(busy.ask("usage", "--by", by), *by.split(",")) == expected


def test_the_whole_is_told_and_costs_are_not_guessed(busy):
    """D14: a cost is what runtimes were told; where none was, there is none."""
    found = busy.ask("usage", "--by", "model")
    assert [(row["model"], row["cost"]) for row in found["usage"]] == [
        ("large", None),
        ("small", 0.75),
    ]
    assert found["total"] == [
        {
            "turns": 4,
            "requests": 8,
            "input_tokens": 71,
            "cached_tokens": 27,
            "output_tokens": 37,
            "reasoning_tokens": 13,
            "cost": 0.75,
        }
    ]


@pytest.mark.parametrize(
    ("words", "days"),
    [
        (("--since", "2026-03-05"), ["2026-03-05"]),
        (("--until", "2026-03-04"), ["2026-03-04"]),
        (("--since", "2026-03-04", "--until", "2026-03-05"), ["2026-03-04", "2026-03-05"]),
        (("--since", "2026-03-06"), []),
    ],
)
def test_days_are_chosen_both_ends_included(busy, words, days):
    found = busy.ask("usage", "--by", "day", *words)
    assert [row["day"] for row in found["usage"]] == days
    assert len(found["total"]) == 1


def test_a_turn_is_of_the_person_who_began_it(busy):
    """D14: whoever else joined in while it ran."""
    busy.sql(
        """
        INSERT INTO inbound_events (platform, native_id, lane, state, received_at, event, turn_id)
        SELECT platform, 'joined', lane, 'merged', received_at,
            json_set(event, '$.sender.id', '9'), 'turn_1' FROM inbound_events WHERE id = 1
        """
    )
    found = busy.ask("usage", "--by", "person")
    assert [row["person"] for row in found["usage"]] == ["console:7", "console:T1:8"]


def test_people_read_a_table(busy):
    code, out, err = busy.run("usage")
    assert (code, err) == (0, "")
    assert out.split()[:4] == ["usage", "day", "model", "turns"]
    assert "2026-03-04  large" in out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--by", "hour"), "'hour' is none of day, profile, person, model"),
        (("--since", "yesterday"), "'yesterday' is no day"),
    ],
)
def test_a_wrong_word_is_said(deployment, capsys, words, says):
    with pytest.raises(SystemExit) as ended:
        deployment.run("usage", *words)
    assert ended.value.code == 2
    assert says in capsys.readouterr().err
