"""Statements that let a turn wait for people, and that end one that waits."""

from __future__ import annotations

import json
from collections.abc import Sequence

from dragoman.errors import StaleLease
from dragoman.states import ApprovalState, EventState, TurnState
from dragoman.store.deliveries import insert_notices
from dragoman.store.endings import account, owe_parts
from dragoman.store.operations import EndWaiting, Pause
from dragoman.store.records import NewRecords, insert_records
from dragoman.store.transaction import Answer, Row, Transaction


async def pause(tx: Transaction, batch: Sequence[Pause]) -> list[Answer]:
    """Keep states, owe what was said, and write the questions down."""
    paused = {
        row[0]
        for row in await tx.set(
            """
            UPDATE agent_runs SET state = 'waiting', saved = j.value ->> 2,
                withdrawn = j.value ->> 3
            FROM json_each(?) AS j
            WHERE agent_runs.id = j.value ->> 0 AND agent_runs.fence = j.value ->> 1
              AND agent_runs.state = 'running'
            RETURNING agent_runs.id
            """,
            [
                (op.lease.turn_id, op.lease.fence, op.saved, json.dumps(op.withdrawn))
                for op in batch
            ],
        )
    }
    live = [op for op in batch if op.lease.turn_id in paused]
    for op in live:  # one by one: its questions come right behind what a turn has said
        await owe_parts(tx, [(op.lease.turn_id, op.parts, op.now)])
        await insert_notices(tx, op.notices)
    if live:
        await _ask(tx, live)
        await account(tx, live)
    same = await _paused_before(tx, [op for op in batch if op.lease.turn_id not in paused])
    return [
        None
        if op.lease.turn_id in paused or op.lease.turn_id in same
        else StaleLease(op.lease.turn_id, op.lease.fence)
        for op in batch
    ]


async def _ask(tx: Transaction, batch: Sequence[Pause]) -> None:
    await tx.set(
        """
        INSERT INTO approvals
            (id, turn_id, number, call_id, tool, arguments, asked_at, expires_at, card, live)
        SELECT value ->> 0, value ->> 1, value ->> 2 + (
            SELECT count(*) FROM approvals AS a WHERE a.turn_id = value ->> 1
        ), value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7, value ->> 8,
            value ->> 8 <> ''
        FROM json_each(?) ORDER BY key
        """,
        [
            (
                one.id,
                op.lease.turn_id,
                number,
                one.call_id,
                one.tool,
                one.arguments,
                op.now,
                one.expires_at,
                one.card,
            )
            for op in batch
            for number, one in enumerate(op.questions)
        ],
    )


async def _paused_before(tx: Transaction, batch: Sequence[Pause]) -> set[str]:
    """Return the turns that wait just as asked: the operation is being repeated."""
    if not batch:
        return set()
    rows = await tx.set(
        """
        SELECT r.id FROM json_each(?) JOIN agent_runs AS r ON r.id = value ->> 0
            AND r.fence = value ->> 1 AND r.state = 'waiting'
        JOIN approvals AS a ON a.id = value ->> 2 AND a.turn_id = r.id
        """,
        [(op.lease.turn_id, op.lease.fence, op.questions[0].id) for op in batch],
    )
    return {row[0] for row in rows}


async def end_waiting(tx: Transaction, batch: Sequence[EndWaiting]) -> list[Answer]:
    """End turns that wait: nothing that they asked for is done any more."""
    ended = await tx.set(
        f"""
        UPDATE agent_runs SET state = '{TurnState.CANCELLED.value}', saved = NULL,
            detail = j.value ->> 1, ended_at = j.value ->> 2
        FROM json_each(?) AS j
        WHERE agent_runs.id = j.value ->> 0 AND agent_runs.state = 'waiting'
        RETURNING agent_runs.id
        """,
        [(op.turn_id, op.detail, op.now) for op in batch],
    )
    await tx.set(
        f"""
        UPDATE approvals SET verdict = '{ApprovalState.CANCELLED.value}', decided_at = (
            SELECT r.ended_at FROM agent_runs AS r WHERE r.id = approvals.turn_id
        ) WHERE turn_id IN (SELECT value ->> 0 FROM json_each(?)) AND verdict = 'open'
        """,
        ended,
    )
    await tx.set(
        f"""
        UPDATE inbound_events SET state = '{EventState.REFUSED.value}', item = NULL,
            reason = (SELECT r.detail FROM agent_runs AS r WHERE r.id = inbound_events.turn_id)
        WHERE turn_id IN (SELECT value ->> 0 FROM json_each(?)) AND state = 'adopted'
        """,
        ended,
    )
    await tx.set(
        """
        UPDATE deliveries SET state = 'abandoned'
        WHERE turn_id IN (SELECT value ->> 0 FROM json_each(?))
          AND place IS NULL AND state = 'sending'
        """,
        ended,
    )
    await _take_back_questions(tx, ended)
    rows = await tx.set(
        f"""
        SELECT r.id FROM json_each(?) JOIN agent_runs AS r ON r.id = value ->> 0
        WHERE r.state = '{TurnState.CANCELLED.value}' AND r.detail = value ->> 1
          AND r.ended_at = value ->> 2
        """,
        [(op.turn_id, op.detail, op.now) for op in batch],
    )
    known = {row[0] for row in rows}
    return [op.turn_id in known for op in batch]


async def _take_back_questions(tx: Transaction, ended: Sequence[Row]) -> None:
    """Let sessions know what their turns wait for no more, as the runtimes have said it."""
    rows = await tx.set(
        """
        SELECT r.session_id, min(e.namespace), r.id, r.withdrawn
        FROM json_each(?) JOIN agent_runs AS r ON r.id = value ->> 0
        JOIN inbound_events AS e ON e.turn_id = r.id
        WHERE r.withdrawn <> '[]' AND e.namespace <> '' GROUP BY r.id
        """,
        ended,
    )
    lists = [
        NewRecords(session_id, namespace, f"withdrawn:{turn_id}", json.loads(items), turn_id)
        for session_id, namespace, turn_id, items in rows
    ]
    await insert_records(tx, lists)
