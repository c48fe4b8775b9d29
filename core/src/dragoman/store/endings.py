"""Statements that end turns: by their own word, or because their owner is dead."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.errors import StaleLease
from dragoman.states import DeliveryState, EventState, TurnState
from dragoman.store.calls import add_usage, insert_calls
from dragoman.store.codec import buttons_to_json, dump, dump_rows, file_to_json
from dragoman.store.deliveries import OPEN, SPOILT, next_place
from dragoman.store.operations import Ended, Finish, Part, Pause, Recover, Recovered, TurnGrant
from dragoman.store.records import take_back
from dragoman.store.transaction import Answer, Row, Transaction
from dragoman.store.turns import (
    Claim,
    granted_before,
    grants_of,
    inputs_of,
    insert_items,
    open_parts,
    take_over,
)


async def finish(tx: Transaction, batch: Sequence[Finish]) -> list[Answer]:
    """End turns, settle their inputs, owe their replies, and hand sessions on."""
    ended = {
        row[0]
        for row in await tx.set(
            """
            UPDATE agent_runs SET state = j.value ->> 2, failure = j.value ->> 3,
                detail = j.value ->> 4, saved = NULL, ended_at = j.value ->> 5
            FROM json_each(?) AS j
            WHERE agent_runs.id = j.value ->> 0 AND agent_runs.fence = j.value ->> 1
              AND agent_runs.state = 'running'
            RETURNING agent_runs.id
            """,
            [_run_row(op) for op in batch],
        )
    }
    live = [op for op in batch if op.lease.turn_id in ended]
    grants: dict[str, TurnGrant] = {}
    if live:
        await _settle_inputs(tx, live)
        await owe_parts(tx, [(op.lease.turn_id, op.parts, op.now) for op in live])
        await account(tx, live)
        if unwanted := [op.lease.turn_id for op in live if op.take_back]:
            await take_back(tx, unwanted)
        grants = await take_over(
            tx, [Claim(op.lease.session_id, op.adoption) for op in live if op.adoption]
        )
    repeated = [op for op in batch if op.lease.turn_id not in ended]
    same = await _ended_before(tx, repeated)
    grants |= await granted_before(
        tx, [op.adoption for op in repeated if op.adoption and op.lease.turn_id in same]
    )
    return [
        Ended(next=grants.get(op.adoption.turn_id) if op.adoption else None)
        if op.lease.turn_id in ended or op.lease.turn_id in same
        else StaleLease(op.lease.turn_id, op.lease.fence)
        for op in batch
    ]


def _run_row(op: Finish) -> tuple[object, ...]:
    return (
        op.lease.turn_id,
        op.lease.fence,
        op.state.value,
        op.failure.value if op.failure else None,
        op.detail,
        op.now,
    )


async def _ended_before(tx: Transaction, batch: Sequence[Finish]) -> set[str]:
    """Return the turns that ended just as asked: the operation is being repeated."""
    if not batch:
        return set()
    rows = await tx.set(
        """
        SELECT r.id FROM json_each(?) JOIN agent_runs AS r ON r.id = value ->> 0
            AND r.fence = value ->> 1 AND r.state = value ->> 2 AND r.ended_at = value ->> 3
        """,
        [(op.lease.turn_id, op.lease.fence, op.state.value, op.now) for op in batch],
    )
    return {row[0] for row in rows}


async def _settle_inputs(tx: Transaction, batch: Sequence[Finish]) -> None:
    await tx.set(
        """
        UPDATE inbound_events SET item = NULL, reason = j.value ->> 1,
            state = CASE WHEN j.value ->> 1 <> '' THEN 'refused'
                WHEN inbound_events.id = (
                    SELECT min(f.id) FROM inbound_events AS f WHERE f.turn_id = j.value ->> 0
                ) THEN 'answered' ELSE 'merged' END
        FROM json_each(?) AS j
        WHERE inbound_events.turn_id = j.value ->> 0 AND inbound_events.state = 'adopted'
        """,
        [(op.lease.turn_id, _refusal(op)) for op in batch],
    )


def _refusal(op: Finish) -> str:
    """Return why the inputs of a turn have no answer; empty where they have one."""
    unanswered = op.state in {TurnState.CANCELLED, TurnState.INTERRUPTED}
    return (op.detail or op.state.value) if unanswered else ""


async def account(tx: Transaction, batch: Sequence[Finish | Pause]) -> None:
    """Add up what turns have used, and keep what they asked models."""
    if used := [(op.lease.turn_id, usage) for op in batch for usage in op.usage]:
        await add_usage(tx, used)
    if kept := [(op.lease, op.kept) for op in batch if op.kept.calls]:
        await insert_calls(tx, kept)


async def owe_parts(tx: Transaction, replies: Sequence[tuple[str, Sequence[Part], float]]) -> None:
    """Write the parts of turns' replies; rows that were opened for nothing end as abandoned."""
    parts = [(turn_id, part, now) for turn_id, reply, now in replies for part in reply]
    await tx.set(
        f"""
        INSERT INTO deliveries
            (id, turn_id, part, lane, address, state, text, created_at, ready_at, file, buttons,
             place)
        SELECT value ->> 0, value ->> 1, value ->> 2, first.lane, first.address, value ->> 3,
            value ->> 4, value ->> 5, value ->> 5, value ->> 6, value ->> 7,
            {next_place("first.lane", "key")}
        FROM json_each(?) JOIN deliveries AS first ON first.number =
            (SELECT min(d.number) FROM deliveries AS d WHERE d.turn_id = value ->> 1)
        WHERE true ORDER BY key
        ON CONFLICT (id) DO UPDATE SET part = excluded.part, state = excluded.state,
            text = excluded.text, ready_at = excluded.ready_at, file = excluded.file,
            buttons = excluded.buttons, place = excluded.place
        WHERE deliveries.turn_id = excluded.turn_id AND deliveries.place IS NULL
          AND deliveries.state = 'sending'
        """,
        [
            (
                part.delivery_id,
                turn_id,
                part.number,
                part.state.value,
                part.text,
                now,
                file_to_json(part.file),
                buttons_to_json(part.buttons),
            )
            for turn_id, part, now in parts
        ],
    )
    await tx.set(
        """
        UPDATE deliveries SET state = 'abandoned'
        WHERE turn_id IN (SELECT value ->> 0 FROM json_each(?))
          AND place IS NULL AND state = 'sending'
        """,
        [(turn_id,) for turn_id, _, _ in replies],
    )


async def recover(tx: Transaction, batch: Sequence[Recover]) -> list[Answer]:
    """Settle what dead owners left. One operation at a time: it is rare and reads a lot."""
    return [await _recover(tx, op) for op in batch]


async def _recover(tx: Transaction, op: Recover) -> Recovered:
    waiting = await _wait_again(tx, op)
    again = await _begin_again(tx, op)
    turns = await tx.rows(
        """
        UPDATE agent_runs SET state = 'interrupted', ended_at = ?1
        WHERE state = 'running' AND owner <> ?2 AND (?3 OR lease_until < ?4)
        RETURNING id
        """,
        op.now,
        op.owner,
        op.everyone,
        op.boot,
    )
    await tx.set(
        f"""
        UPDATE inbound_events SET state = '{EventState.REFUSED.value}', reason = 'interrupted',
            item = NULL
        WHERE turn_id IN (SELECT value ->> 0 FROM json_each(?)) AND state = 'adopted'
        """,
        turns,
    )
    await _mark_interrupted(tx, op, [row[0] for row in turns])
    uncertain: list[Row] = []
    expired: list[Row] = []
    if op.everyone:
        uncertain = await tx.rows(
            f"""
            UPDATE deliveries
            SET state = CASE native_id WHEN '' THEN 'uncertain' ELSE 'pending' END
            WHERE {OPEN} AND state = 'sending' AND place IS NOT NULL RETURNING state
            """
        )
        expired = await tx.rows(
            f"""
            UPDATE deliveries SET state = 'abandoned', error = 'expired',
                text = iif({SPOILT}, NULL, text)
            WHERE {OPEN} AND state <> 'sending' AND ready_at < ? RETURNING 1
            """,
            op.oldest,
        )
    return Recovered(
        interrupted=tuple(row[0] for row in turns),
        again=again,
        waiting=waiting,
        uncertain=sum(1 for row in uncertain if row[0] == DeliveryState.UNCERTAIN.value),
        expired=len(expired),
    )


async def _wait_again(tx: Transaction, op: Recover) -> tuple[str, ...]:
    """Let turns go on from their pause once more, of which nothing was done since."""
    rows = await tx.rows(
        """
        UPDATE agent_runs SET state = 'waiting', fence = fence + 1, attempt = attempt + 1
        WHERE state = 'running' AND owner <> ?1 AND (?2 OR lease_until < ?3)
          AND saved IS NOT NULL AND attempt < ?4
        RETURNING id
        """,
        op.owner,
        op.everyone,
        op.boot,
        op.attempts,
    )
    return tuple(sorted(row[0] for row in rows))


async def _begin_again(tx: Transaction, op: Recover) -> tuple[TurnGrant, ...]:
    """Take over the turns that may be run again: same turn, next fence, records taken back."""
    if not op.retry:
        return ()
    turns = await tx.rows(
        """
        UPDATE agent_runs SET owner = ?2, fence = fence + 1, attempt = attempt + 1,
            lease_until = ?6
        WHERE state = 'running' AND owner <> ?2 AND (?3 OR lease_until < ?4) AND attempt < ?5
          AND (SELECT s.profile FROM platform_sessions AS s WHERE s.id = session_id)
              IN (SELECT value FROM json_each(?1))
          AND NOT EXISTS (
            SELECT 1 FROM tool_calls AS c WHERE c.turn_id = agent_runs.id AND NOT c.read_only
          ) AND NOT EXISTS (
            SELECT 1 FROM approvals AS a WHERE a.turn_id = agent_runs.id
          ) AND NOT EXISTS (
            SELECT 1 FROM inbound_events AS e
            WHERE e.turn_id = agent_runs.id AND e.state <> 'adopted'
          ) AND EXISTS (
            SELECT 1 FROM deliveries AS d WHERE d.turn_id = agent_runs.id AND d.state = 'sending'
              AND d.place IS NULL
          ) AND EXISTS (
            SELECT 1 FROM inbound_events AS e
            WHERE e.turn_id = agent_runs.id AND e.received_at >= ?7
          )
        RETURNING id
        """,
        dump(op.retry),
        op.owner,
        op.everyone,
        op.boot,
        op.attempts,
        op.lease_until,
        op.oldest,
    )
    names = [row[0] for row in turns]
    await take_back(tx, names)
    inputs = await inputs_of(tx, names)
    await insert_items(tx, inputs)  # those of a generation that the turn began are not lost
    parts = await open_parts(tx, names)
    grants = await grants_of(tx, inputs, parts)
    return tuple(sorted(grants.values(), key=lambda grant: grant.inputs[0].id))


async def _mark_interrupted(tx: Transaction, op: Recover, turns: Sequence[str]) -> None:
    """Owe a visible end to each interrupted turn, on its last part that is known to be shown."""
    rows = await tx.set(
        """
        SELECT d.id, d.turn_id, d.native_id, d.shown FROM deliveries AS d
        WHERE d.turn_id IN (SELECT value ->> 0 FROM json_each(?)) AND d.state = 'sending'
          AND d.place IS NULL
        ORDER BY (
            SELECT min(e.id) FROM inbound_events AS e WHERE e.turn_id = d.turn_id
        ), d.turn_id, d.number
        """,
        [(turn_id,) for turn_id in turns],
    )
    by_turn: dict[str, list[Row]] = {}
    for row in rows:
        by_turn.setdefault(row[1], []).append(row)
    changes: list[tuple[object, ...]] = []
    for parts in by_turn.values():
        known = [part for part in parts if part[2]]
        last = known[-1] if known else parts[0]
        for part in parts:
            if part is last:
                text = f"{part[3]}\n\n{op.mark}" if part[3] else op.notice
                changes.append((part[0], DeliveryState.PENDING.value, text))
            elif part[2]:
                changes.append((part[0], DeliveryState.DELIVERED.value, part[3]))
            else:
                changes.append((part[0], DeliveryState.ABANDONED.value, None))
    await tx.rows(
        f"""
        UPDATE deliveries SET state = j.value ->> 1, text = j.value ->> 2, ready_at = ?2,
            place = {next_place("deliveries.lane", "j.key")}
        FROM json_each(?1) AS j WHERE deliveries.id = j.value ->> 0
        """,
        dump_rows(changes),
        op.now,
    )
