"""How requests are kept: pieces that repeat once, and as long as their turns are among the newest."""

import hashlib
import json
import sqlite3
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.store import operations as ops
from dragoman.store.modeltrace import sent
from dragoman.store.requests import (
    LONGEST,
    LONGEST_STRING,
    cut,
    pieces_of,
    ranges,
    unused,
)
from dragoman.store.sqlite import open_sqlite
from dragoman.testing.store import NOW, Scene

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=20,
)


@given(st.dictionaries(st.text(max_size=3), VALUES), st.sampled_from([None, 1, 2]))
def test_pieces_joined_are_the_request_again(value, indent):
    """A10: byte for byte, however it was written."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    assert "".join(cut(text)) == text


@given(st.text(alphabet='{}[]",: \\ab1', max_size=30))
def test_what_is_no_json_is_kept_as_it_is(text):
    assert "".join(cut(text)) == text


@pytest.mark.parametrize("text", ["", "[1]", '{"a"', '{"a":[1', "{" * 100_000, '{"a":[' * 50_000])
def test_what_is_cut_short_is_one_piece(text):
    assert list(cut(text)) == ([text] if text else [])


def test_a_request_is_cut_at_the_elements_of_its_lists():
    assert list(cut('{"a":1,"input":[{"x":[1]},2], "tools":[],"t":[3]}')) == [
        '{"a":1,"input":[',
        '{"x":[1]}',
        ",2",
        '], "tools":[],"t":[',
        "3",
        "]}",
    ]


@given(st.lists(st.integers(1, 30)))
def test_ranges_are_numbers_in_their_order(numbers):
    found = ranges(numbers)
    assert [n for first, last in found for n in range(first, last + 1)] == numbers
    free = unused(found)
    assert {n for n in range(1, 40) if any(a <= n <= b for a, b in free)} == {
        n for n in range(1, 40) if n not in numbers
    }


def test_a_picture_is_kept_as_its_length_and_hash():
    """A10: attachments by what is known of them; the text around it stays."""
    url = "data:image/png;base64," + "A" * LONGEST_STRING
    item = {"role": "user", "content": [{"image_url": url}, {"text": 'say "hi"'}]}
    kept = json.loads("".join(pieces_of(json.dumps({"input": [item]}))))
    image, words = kept["input"][0]["content"]
    name = hashlib.sha256(url.encode()).hexdigest()
    assert image["image_url"] == f"[left out: {len(url) + 2} characters, sha256 {name}]"
    assert words == {"text": 'say "hi"'}


def test_a_request_of_any_size_is_bounded():
    """Invariant 10."""
    many = json.dumps({"input": ["a" * 60_000] * (LONGEST // 60_000 + 1)})
    (piece,) = pieces_of(many)
    assert json.loads(piece).startswith("[left out: ")


def conversation(number):
    """The request after that many exchanges: all of them, between settings that stay."""
    items = [{"role": "user", "content": f"message {n} " + "x" * 200} for n in range(number)]
    tools = [{"name": f"tool{n}", "description": "y" * 200} for n in range(10)]
    return json.dumps({"model": "m", "input": items, "tools": tools, "stream": True})


async def keep(store, grant, text, turns=100):
    kept = ops.KeptCall(
        id=f"call of {grant.lease.turn_id} {hash(text)}",
        model="m",
        begun_at=NOW,
        ended_at=NOW,
        outcome="completed",
        pieces=pieces_of(text),
    )
    calls = ops.KeptCalls((kept,), turns)
    await store.apply(ops.KeepCalls(lease=grant.lease, kept=calls))


async def size(store):
    rows = await store.connections[0].execute_fetchall(
        "SELECT (SELECT total(length(text)) FROM model_pieces)"
        " + (SELECT total(length(pieces)) FROM model_calls)"
    )
    return next(iter(rows))[0]


@pytest.mark.anyio
async def test_what_is_kept_grows_with_the_history_and_not_with_its_square():
    """A10: a hundred requests, each with all before it, take what the last one does."""
    async with open_sqlite(None) as store:
        grant = await Scene(store).running()
        for number in range(1, 101):
            await keep(store, grant, conversation(number))
        assert await size(store) < 1.1 * len(conversation(100)) + 100 * 40


@pytest.mark.anyio
async def test_requests_of_older_turns_go_and_others_can_still_be_read(tmp_path):
    """A10: also what they share with those that stay; another session's are its own."""
    path = tmp_path / "a.db"
    async with open_sqlite(path) as store:
        scene = Scene(store)
        other = await scene.running(channel="2")
        await keep(store, other, conversation(2), turns=2)
        ids = []
        for number in range(1, 6):
            grant = await scene.running()
            ids.append(grant.lease.turn_id)
            await keep(store, grant, conversation(number), turns=2)
            await store.apply(scene.finish(grant, next_turn=False))
        with closing(sqlite3.connect(path)) as db:
            texts = [dict(sent(db, id_)) for id_ in [*ids, other.lease.turn_id]]
        assert [text[1] for text in texts] == [
            *[None] * 3,
            *[conversation(number) for number in (4, 5, 2)],
        ]
        grant = await scene.running()
        await keep(store, grant, "", turns=0)
        counts = await store.connections[1].execute_fetchall(
            "SELECT session_id, count(*) FROM model_pieces GROUP BY session_id"
        )
        assert [row[0] for row in counts] == [other.lease.session_id]
