"""Answers to interactions, dialogs and uploads, asked by a bare client."""

from __future__ import annotations

import json

import httpx
import pytest

from peers.slack_fake import SlackFake

pytestmark = pytest.mark.anyio
ADA = "U0ADA"


async def call(http, method: str, **params):
    return (await http.post(method, json=params)).json()


async def test_uploads_are_what_was_announced(fake: SlackFake, room, http):
    form = {"filename": "a b.txt", "length": 3}
    made = (await http.post("files.getUploadURLExternal", data=form)).json()
    done = {"files": json.dumps([{"id": made["file_id"]}]), "channel_id": room}
    early = await http.post("files.completeUploadExternal", data=done)
    assert early.json()["error"] == "file_not_found"
    assert (await http.post(made["upload_url"], content=b"four")).status_code == 400
    taken = await http.post(made["upload_url"], files={"file": ("a", b"abc")})
    assert (taken.text, taken.headers["content-type"]) == ("OK - 3", "text/plain")
    answer = (await http.post("files.completeUploadExternal", data=done)).json()
    assert answer["files"][0]["url_private"].endswith("/a%20b.txt")
    assert (await http.get(answer["files"][0]["url_private"])).content == b"abc"
    fake.cut("download")
    with pytest.raises(httpx.TransportError):
        await http.get(answer["files"][0]["url_private"])


async def test_a_response_url_is_good_for_five_answers(fake: SlackFake, clock, room, http):
    url = fake.slash(room, ADA, "/ask").payload["response_url"]
    for n in range(5):
        assert (await http.post(url, json={"text": str(n)})).json() == {"ok": True}
    spent = await http.post(url, json={"text": "6"})
    assert (spent.status_code, spent.json()["error"]) == (404, "used_url")
    assert [one.source for one in fake.ephemerals(room, ADA)] == ["0", "1", "2", "3", "4"]
    late = fake.slash(room, ADA, "/ask").payload["response_url"]
    clock.advance(1801)
    assert (await http.post(late, json={"text": "x"})).json()["error"] == "expired_url"
    assert (await http.post(late + "0", json={"text": "x"})).status_code == 404


async def test_an_answer_takes_the_place_of_the_buttons(fake: SlackFake, room, http):
    button = {"type": "button", "action_id": "ok", "text": {"type": "plain_text", "text": "OK"}}
    blocks = [{"type": "actions", "elements": [button]}]
    sent = await call(http, "chat.postMessage", channel=room, text="sure?", blocks=blocks)
    hidden = await call(
        http, "chat.postEphemeral", channel=room, user=ADA, text="psst", blocks=blocks
    )
    for ts in (sent["ts"], hidden["message_ts"]):
        pressed = fake.press(room, ts, ADA, "ok")
        answer = {"text": "done", "replace_original": True}
        await http.post(pressed.payload["response_url"], json=answer)
    assert [(one.source, one.actions) for one in fake.shown(room)] == [("done", ())]
    assert [one.source for one in fake.ephemerals(room)] == ["done"]
    pressed = fake.press
    with pytest.raises(LookupError):
        pressed(room, sent["ts"], ADA, "ok")


async def test_a_trigger_opens_one_dialog_and_soon(fake: SlackFake, clock, room, http):
    title = {"type": "plain_text", "text": "Form"}
    view = {"type": "modal", "title": title, "blocks": [], "external_id": "mine"}
    first = fake.slash(room, ADA, "/form").payload["trigger_id"]
    opened = await call(http, "views.open", trigger_id=first, view=view)
    assert opened["view"]["team_id"] == fake.team.id
    again = await call(http, "views.open", trigger_id=first, view=view)
    assert again["error"] == "exchanged_trigger_id"
    late = fake.slash(room, ADA, "/form").payload["trigger_id"]
    clock.advance(4)
    expired = await call(http, "views.open", trigger_id=late, view=view)
    assert expired["error"] == "expired_trigger_id"
    wrong = await call(http, "views.open", trigger_id="x", view=view)
    assert wrong["error"] == "invalid_trigger_id"
    stale = await call(http, "views.update", external_id="mine", view=view, hash="x")
    assert stale["error"] == "hash_conflict"
    updated = await call(http, "views.update", external_id="mine", view=view)
    assert updated["view"]["id"] == opened["view"]["id"]
    assert fake.close_view(opened["view"]["id"], ADA).payload["type"] == "view_closed"
