"""One update of every kind, as small as the reference allows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_PERSON: Final = {"id": 700000001, "is_bot": False, "first_name": "Ada"}
_BOT: Final = {"id": 700000009, "is_bot": True, "first_name": "Other", "username": "other_bot"}
_DM: Final = {"id": 700000001, "type": "private", "first_name": "Ada"}
_GROUP: Final = {"id": -1001500000003, "type": "supergroup", "title": "Friends"}
_CHANNEL: Final = {"id": -1001500000005, "type": "channel", "title": "News"}
_DATE: Final = 1_790_000_000
_LIKE: Final = {"type": "emoji", "emoji": "👍"}
_BOOST: Final = {"source": "premium", "user": _PERSON}
_SAID: Final = {"message_id": 11, "date": _DATE, "chat": _DM, "from": _PERSON, "text": "hi"}
_POSTED: Final = {"message_id": 12, "date": _DATE, "chat": _CHANNEL, "sender_chat": _CHANNEL}
_BUSINESS: Final = {**_SAID, "business_connection_id": "b1"}
_MEMBER: Final = {
    "chat": _GROUP,
    "from": _PERSON,
    "date": _DATE,
    "old_chat_member": {"status": "left", "user": _PERSON},
    "new_chat_member": {"status": "member", "user": _PERSON},
}
_POLL: Final = {
    "id": "p1",
    "question": "Tea?",
    "options": [{"persistent_id": "0", "text": "Yes", "voter_count": 1}],
    "total_voter_count": 1,
    "is_closed": False,
    "is_anonymous": True,
    "type": "regular",
    "allows_multiple_answers": False,
    "allows_revoting": True,
    "members_only": False,
}
_ADDRESS: Final = {
    "country_code": "DE",
    "state": "",
    "city": "Berlin",
    "street_line1": "One",
    "street_line2": "",
    "post_code": "10115",
}

SAMPLES: Final[Mapping[str, Mapping[str, Any]]] = {
    "message": _SAID,
    "edited_message": {**_SAID, "edit_date": _DATE + 1},
    "channel_post": {**_POSTED, "text": "post"},
    "edited_channel_post": {**_POSTED, "text": "post", "edit_date": _DATE + 1},
    "business_connection": {
        "id": "b1",
        "user": _PERSON,
        "user_chat_id": 700000001,
        "date": _DATE,
        "is_enabled": True,
    },
    "business_message": _BUSINESS,
    "edited_business_message": {**_BUSINESS, "edit_date": _DATE + 1},
    "deleted_business_messages": {
        "business_connection_id": "b1",
        "chat": _DM,
        "message_ids": [11],
    },
    "guest_message": {**_SAID, "chat": _GROUP, "guest_query_id": "g1"},
    "message_reaction": {
        "chat": _GROUP,
        "message_id": 11,
        "user": _PERSON,
        "date": _DATE,
        "old_reaction": [],
        "new_reaction": [_LIKE],
    },
    "message_reaction_count": {
        "chat": _CHANNEL,
        "message_id": 12,
        "date": _DATE,
        "reactions": [{"type": _LIKE, "total_count": 3}],
    },
    "inline_query": {"id": "q1", "from": _PERSON, "query": "tea", "offset": ""},
    "chosen_inline_result": {"result_id": "r1", "from": _PERSON, "query": "tea"},
    "callback_query": {
        "id": "c1",
        "from": _PERSON,
        "inline_message_id": "i1",
        "chat_instance": "1",
        "data": "go",
    },
    "shipping_query": {
        "id": "s1",
        "from": _PERSON,
        "invoice_payload": "x",
        "shipping_address": _ADDRESS,
    },
    "pre_checkout_query": {
        "id": "s2",
        "from": _PERSON,
        "currency": "XTR",
        "total_amount": 1,
        "invoice_payload": "x",
    },
    "purchased_paid_media": {"from": _PERSON, "paid_media_payload": "x"},
    "poll": _POLL,
    "poll_answer": {
        "poll_id": "p1",
        "user": _PERSON,
        "option_ids": [0],
        "option_persistent_ids": ["0"],
    },
    "my_chat_member": {
        **_MEMBER,
        "old_chat_member": {"status": "left", "user": _BOT},
        "new_chat_member": {"status": "member", "user": _BOT},
    },
    "chat_member": _MEMBER,
    "chat_join_request": {
        "chat": _GROUP,
        "from": _PERSON,
        "user_chat_id": 700000001,
        "date": _DATE,
    },
    "chat_boost": {
        "chat": _CHANNEL,
        "boost": {
            "boost_id": "x",
            "add_date": _DATE,
            "expiration_date": _DATE + 86_400,
            "source": _BOOST,
        },
    },
    "removed_chat_boost": {
        "chat": _CHANNEL,
        "boost_id": "x",
        "remove_date": _DATE,
        "source": _BOOST,
    },
    "managed_bot": {"user": _PERSON, "bot": _BOT},
    "subscription": {"user": _PERSON, "invoice_payload": "x", "state": "active"},
    "stopped_message_generation": {"chat": _DM, "draft_id": 5},
}
