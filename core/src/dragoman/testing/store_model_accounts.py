"""What the operations on codes and accounts do to the store's model."""

from __future__ import annotations

import attrs

from dragoman.messages import Inbound
from dragoman.roles import Role
from dragoman.states import DeliveryState, EventState, TurnState
from dragoman.store import operations as ops
from dragoman.store.accounts import (
    CODE_SECONDS,
    CODES,
    FAILURES,
    LOCKED_SECONDS,
    MISSES,
    PAUSE_SECONDS,
    WINDOW_SECONDS,
    digest,
)
from dragoman.store.identities import REVOKED
from dragoman.testing.store_model import StoreModel
from dragoman.testing.store_model_pauses import end_waiting
from dragoman.testing.store_model_rows import ModelAttempts, ModelCode, ModelIdentity


def make_code(model: StoreModel, op: ops.MakeCode, _: object) -> bool:
    """Make a code, unless there were too many."""
    for selector, code in list(model.codes.items()):
        if code.made_at + CODE_SECONDS <= op.now:
            del model.codes[selector]
    if op.selector in model.codes:
        return model.codes[op.selector].wish.hash == op.hash
    mine = [(selector, code) for selector, code in model.codes.items() if code.wish.key == op.key]
    asked = 1
    for selector, code in mine:
        if code.asked >= CODES or code.made_at + PAUSE_SECONDS > op.now:
            return False
        asked = code.asked + 1
        del model.codes[selector]
    model.codes[op.selector] = ModelCode(op, op.now, asked)
    model.notify(op.notice)
    return True


def redeem(model: StoreModel, op: ops.Redeem, _: object) -> ops.Redeemed:
    """Let a right code count once, and a wrong one against its actor."""
    known = model.attempts.get(op.actor) or ModelAttempts(op.now)
    locked = known.locked_until > op.now
    if known.latest == op.attempt:
        return ops.Redeemed(identity=known.found, locked=locked)
    if locked:
        return ops.Redeemed(locked=True)
    if known.locked_until or known.since + WINDOW_SECONDS <= op.now:
        known = ModelAttempts(op.now)
    found = _use(model, op)
    failures = 0 if found else known.failures + 1
    known = attrs.evolve(known, failures=failures, latest=op.attempt, found=found)
    if failures >= FAILURES:
        known = attrs.evolve(known, locked_until=op.now + LOCKED_SECONDS)
    model.attempts[op.actor] = known
    return ops.Redeemed(identity=found, locked=known.locked_until > op.now)


def _use(model: StoreModel, op: ops.Redeem) -> str:
    code = model.codes.get(op.selector)
    good = (
        code
        and code.wish.purpose == op.purpose
        and code.made_at + CODE_SECONDS > op.now
        and code.wish.hash == digest(code.wish.salt, op.verifier)
        and code.wish.identity != op.actor
    )
    if code is None or not good:
        if code:
            code.misses += 1
            if code.misses >= MISSES:
                del model.codes[op.selector]
        return ""
    del model.codes[op.selector]
    identity = code.wish.identity
    if op.purpose == "pair":
        row = model.identities.setdefault(identity, ModelIdentity(identity))
        row.label, row.by = code.wish.label, op.actor
        row.role = row.role if row.role is Role.OPERATOR else op.role
    else:
        _join(model, identity, op.actor, op.actor)
    model.notify(
        ops.Delivery(
            id=op.notice_id,
            address=code.wish.notice.address,
            text=op.told,
            state=DeliveryState.PENDING,
            ready_at=op.now,
        )
    )
    return identity


def set_role(model: StoreModel, op: ops.SetRole, _: object) -> bool:
    """Let an account be something, or end what waits on its behalf."""
    row = model.identities.get(op.identity) or ModelIdentity(op.identity)
    changed = row.role is not op.role
    if changed:
        row.role, row.by = op.role, op.by
        model.identities[op.identity] = row
    if op.role is None:
        for selector, code in list(model.codes.items()):
            if code.wish.identity == op.identity:
                del model.codes[selector]
        _end_waiting(model, op)
    return changed


def _end_waiting(model: StoreModel, op: ops.SetRole) -> None:
    def theirs(one: Inbound) -> bool:
        return f"stub:{one.sender.id}" == op.identity and one.address.platform in op.platforms

    for event in model.events.values():
        if event.state is EventState.QUEUED and theirs(event.inbound):
            event.move(EventState.REFUSED, REVOKED)
            event.item = ""
    for name in sorted(model.turns):
        inputs = [event.inbound for event in model.inputs(name)]
        if model.turns[name].state is TurnState.WAITING and any(map(theirs, inputs)):
            end_waiting(model, ops.EndWaiting(turn_id=name, detail=REVOKED, now=op.now), None)
            model.notify(
                ops.Delivery(
                    id=f"revoked_{name}",
                    address=inputs[0].address,
                    text=op.notice,
                    state=DeliveryState.PENDING,
                    ready_at=op.now,
                )
            )


def link(model: StoreModel, op: ops.Link, _: object) -> bool:
    """Let two accounts be one person's."""
    return _join(model, op.identity, op.other, op.by)


def _join(model: StoreModel, kept: str, joined: str, by: str) -> bool:
    known = [model.identities.get(name) or ModelIdentity(name, by=by) for name in (kept, joined)]
    person, gone = (row.person for row in known)
    if person == gone:
        return False
    for row in known:
        model.identities[row.identity] = row
    for row in model.identities.values():
        if row.person == gone:
            row.person, row.by = person, by
    return True


def unlink(model: StoreModel, op: ops.Unlink, _: object) -> bool:
    """Let an account be a person of its own."""
    row = model.identities.get(op.identity)
    persons = [one.person for one in model.identities.values()]
    if row is None or persons.count(row.person) < 2:
        return False
    row.person, row.by = op.person, op.by
    return True
