"""Statements for the journal: calls with side effects, before they begin and when they have ended."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.store.operations import BeginTool, EndTool, Journalled
from dragoman.store.transaction import Answer, Transaction


async def begin_tool(tx: Transaction, batch: Sequence[BeginTool]) -> list[Answer]:
    """Write down what is about to begin; what an earlier attempt began is answered as it stands."""
    stale = await tx.stale((op.lease for op in batch), using_up=True)
    live = [op for op in batch if op.lease not in stale]
    await tx.set(
        """
        INSERT INTO tool_calls (effect_key, turn_id, call_key, tool, read_only, fence, begun_at)
        SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5,
            value ->> 6
        FROM json_each(?) WHERE true ON CONFLICT (effect_key) DO UPDATE SET
            fence = excluded.fence, call_key = excluded.call_key, begun_at = excluded.begun_at
        WHERE tool_calls.read_only AND tool_calls.result IS NULL
        """,
        [
            (
                op.effect_key,
                op.lease.turn_id,
                op.call_key,
                op.tool,
                op.read_only,
                op.lease.fence,
                op.now,
            )
            for op in live
        ],
    )
    rows = await tx.set(
        """
        SELECT c.effect_key, c.fence, c.result FROM json_each(?)
        JOIN tool_calls AS c ON c.effect_key = value ->> 0
        """,
        [(op.effect_key,) for op in live],
    )
    found = {row[0]: row for row in rows}
    return [
        stale.get(op.lease)
        or Journalled(
            begun=found[op.effect_key][1] == op.lease.fence and found[op.effect_key][2] is None,
            result=found[op.effect_key][2],
        )
        for op in batch
    ]


async def end_tool(tx: Transaction, batch: Sequence[EndTool]) -> list[Answer]:
    """Write down results; the first one of a call stays."""
    stale = await tx.stale(op.lease for op in batch)
    await tx.set(
        """
        UPDATE tool_calls SET result = j.value ->> 2, ended_at = j.value ->> 3
        FROM json_each(?) AS j
        WHERE tool_calls.effect_key = j.value ->> 0 AND tool_calls.turn_id = j.value ->> 1
          AND tool_calls.result IS NULL
        """,
        [
            (op.effect_key, op.lease.turn_id, op.result, op.now)
            for op in batch
            if op.lease not in stale
        ],
    )
    return [stale.get(op.lease) for op in batch]
