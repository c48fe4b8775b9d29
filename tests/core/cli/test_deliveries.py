"""`dragoman deliveries`: the ledger, and what the operator decides."""

import pytest

from dragoman.states import DeliveryState

State = DeliveryState


def row(deployment, delivery_id):
    """A row as (state, text, error)."""
    [found] = deployment.sql("SELECT state, text, error FROM deliveries WHERE id = ?", delivery_id)
    return found


def test_the_ledger_is_listed_newest_first_by_state_and_session(deployment):
    """B13."""
    rows = deployment.ask("deliveries", "list")["deliveries"]
    assert [each["delivery"] for each in rows] == ["msg_2", "msg_1"]
    rows = deployment.ask("deliveries", "list", "--state", "delivered")["deliveries"]
    assert [(each["delivery"], each["turn"], each["native_id"]) for each in rows] == [
        ("msg_1", "turn_1", "77")
    ]
    by_session = deployment.ask("deliveries", "list", "--session", deployment.session)
    assert len(by_session["deliveries"]) == 2
    assert len(deployment.ask("deliveries", "list", "--limit", "1")["deliveries"]) == 1
    _, out, _ = deployment.run("deliveries", "list")
    assert [line.split()[0] for line in out.splitlines()] == ["delivery", "msg_2", "msg_1"]


def test_one_delivery_is_shown(deployment):
    code, out, _ = deployment.run("deliveries", "show", "msg_1")
    assert code == 0
    assert "  native_id       77" in out.splitlines()
    assert "hello back" not in out
    [found] = deployment.ask("deliveries", "show", "msg_1", "--texts")["deliveries"]
    assert (found["text"], found["shown"]) == ("hello back", "hello back")
    assert deployment.run("deliveries", "show", "nothing")[0] == 1


def test_an_uncertain_one_is_owed_again_as_it_is(deployment):
    """B7: at the operator's word, without a mark."""
    deployment.put("msg_3", State.UNCERTAIN)
    assert deployment.run("deliveries", "retry", "msg_3") == (0, "msg_3\n", "")
    assert row(deployment, "msg_3")[:2] == ("pending", "words")


@pytest.mark.parametrize("state", [State.FAILED, State.ABANDONED])
def test_one_that_has_ended_stays_so_and_a_new_row_follows_it(deployment, state):
    """B7, invariant 4: what is final is never changed; both rows name each other."""
    deployment.put("msg_3", state)
    code, out, _ = deployment.run("deliveries", "retry", "msg_3")
    new = out.strip()
    assert code == 0
    assert new != "msg_3"
    assert row(deployment, new) == ("pending", "words", "retry of msg_3")
    assert row(deployment, "msg_3") == (state.value, "words", f"as put; retried as {new}")
    [(address, old)] = deployment.sql(
        "SELECT address, (SELECT address FROM deliveries WHERE id = 'msg_3') "
        "FROM deliveries WHERE id = ?",
        new,
    )
    assert address == old
    places = dict(deployment.sql("SELECT id, place FROM deliveries"))
    assert places[new] > places["msg_2"]


@pytest.mark.parametrize(
    ("action", "state", "says"),
    [
        ("retry", State.DELIVERED, "is delivered; it would have to be uncertain, failed or"),
        ("retry", State.PENDING, "is pending; it would"),
        ("retry", State.SENDING, "is sending; it would"),
        ("retry", State.SUPERSEDED, "is superseded; it would"),
        ("abandon", State.DELIVERED, "is delivered; it would have to be pending or uncertain"),
        ("abandon", State.SENDING, "is sending; it would"),
        ("abandon", State.FAILED, "is failed; it would"),
    ],
)
def test_what_cannot_be_decided_is_refused_and_left_as_it_is(deployment, action, state, says):
    deployment.put("msg_3", state)
    code, out, err = deployment.run("deliveries", action, "msg_3")
    assert (code, out) == (1, "")
    assert f"msg_3 {says}" in err
    assert row(deployment, "msg_3") == (state.value, "words", "as put")
    assert deployment.run("deliveries", action, "nothing")[::2] == (
        1,
        "there is no delivery nothing\n",
    )


def test_one_without_a_text_cannot_be_sent_again(deployment):
    deployment.put("msg_3", State.ABANDONED, text=None)
    code, _, err = deployment.run("deliveries", "retry", "msg_3")
    assert (code, err) == (1, "msg_3 holds no text that could be sent again\n")


@pytest.mark.parametrize("state", [State.PENDING, State.UNCERTAIN])
def test_what_is_abandoned_is_owed_no_more(deployment, state):
    """B7."""
    deployment.put("msg_3", state)
    assert deployment.run("deliveries", "abandon", "msg_3") == (0, "msg_3\n", "")
    assert row(deployment, "msg_3") == ("abandoned", "words", "abandoned by the operator")


FILE = '{"id":"file_1","name":"report.pdf","mime":"application/pdf","kind":"file","size":9}'


def test_the_ledger_names_the_file_of_a_part(deployment):
    """B13: which file a message was, in both lists; the bytes are nowhere in the store."""
    deployment.sql("UPDATE deliveries SET file = ? WHERE id = 'msg_2'", FILE)
    for words in (["deliveries", "list"], ["deliveries", "show", "msg_2"], ["runs", "show", "1"]):
        named = {row["delivery"]: row["file"] for row in deployment.ask(*words)["deliveries"]}
        assert named["msg_2"] == "report.pdf"
        assert named.get("msg_1") is None


def test_a_file_that_has_ended_cannot_be_sent_again(deployment):
    """B7: its copy went with it; the operator is told, and nothing is owed."""
    deployment.put("msg_3", State.FAILED)
    deployment.sql("UPDATE deliveries SET file = ? WHERE id = 'msg_3'", FILE)
    code, _, err = deployment.run("deliveries", "retry", "msg_3")
    assert (code, err) == (1, "msg_3 was a file, and its copy is kept no longer\n")
    deployment.put("msg_4", State.UNCERTAIN)
    deployment.sql("UPDATE deliveries SET file = ? WHERE id = 'msg_4'", FILE)
    assert deployment.run("deliveries", "retry", "msg_4") == (0, "msg_4\n", "")
    assert row(deployment, "msg_4")[0] == "pending"
