"""One sample of each operation: how to come to it, and what asking again answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

import attrs

from dragoman.keys import new_id
from dragoman.messages import Button, Kind
from dragoman.roles import Role
from dragoman.states import DeliveryState, EventState
from dragoman.store import operations as ops
from dragoman.testing.store_scene import NOW, Scene


@attrs.frozen
class Sample:
    """How to test one operation: how to come to one, and what a repetition answers.

    ``again`` is what asking a second time answers; ``None`` means "the same as the first time".
    """

    make: Callable[[Scene], Awaitable[ops.Operation[Any]]]
    again: Callable[[Any], Any] | None = None


async def _receive(scene: Scene) -> ops.Receive:
    return ops.Receive(inbound=scene.inbound(), now=NOW)


async def _merge(scene: Scene) -> ops.Merge:
    event_id, part = [await scene.received(held=True) for _ in range(2)]
    return scene.merge(event_id, part)


async def _settle(scene: Scene) -> ops.Settle:
    return ops.Settle(
        event_id=await scene.received(),
        state=EventState.REFUSED,
        reason="not on any list",
        notices=(scene.notice(), scene.notice()),
    )


async def _move(scene: Scene) -> ops.Move:
    await scene.running()
    return ops.Move(platform="stub", workspace="", old="1", new="-100")


async def _accept(scene: Scene) -> ops.Accept:
    return scene.accept(await scene.received())


async def _adopt(scene: Scene) -> ops.Adopt:
    return ops.Adopt(session_id=await scene.queued(), adoption=scene.adoption())


async def _absorb(scene: Scene) -> ops.Absorb:
    grant = await scene.running()
    return ops.Absorb(lease=grant.lease, event_ids=(await scene.waiting(),))


async def _stop(scene: Scene) -> ops.Stop:
    grant = await scene.running()
    await scene.waiting()
    await scene.received(held=True)
    return scene.stop(grant.lease.session_id, await scene.received())


async def _reset(scene: Scene) -> ops.Reset:
    grant = await scene.running()
    await scene.store.apply(scene.finish(grant, next_turn=False))
    event_id = await scene.received()
    return ops.Reset(session_id=grant.lease.session_id, event_id=event_id, now=NOW)


async def _resume(scene: Scene) -> ops.Resume:
    reset = await _reset(scene)
    fresh, event_id = await scene.store.apply(reset), await scene.received()
    return ops.Resume(session_id=fresh, wanted=reset.session_id, event_id=event_id)


async def _undo(scene: Scene) -> ops.Undo:
    reset = await _reset(scene)
    return ops.Undo(
        session_id=reset.session_id, event_id=reset.event_id, namespaces=("transcript",)
    )


async def _rename(scene: Scene) -> ops.Rename:
    grant = await scene.running()
    return ops.Rename(session_id=grant.lease.session_id, title="about cats")


async def _finish(scene: Scene) -> ops.Finish:
    grant = await scene.running()
    await scene.queued()
    return scene.finish(grant)


async def _pause(scene: Scene) -> ops.Pause:
    return scene.pause(await scene.running())


async def _decide(scene: Scene) -> ops.Decide:
    pause = await _pause(scene)
    await scene.store.apply(pause)
    return scene.decide(pause, always=True)


async def _clear_card(scene: Scene) -> ops.ClearCard:
    decide = await _decide(scene)
    await scene.store.apply(decide)
    return ops.ClearCard(approval_id=decide.approval_id)


async def _expire(scene: Scene) -> ops.Expire:
    await scene.store.apply(await _pause(scene))
    return ops.Expire(now=NOW + 60)


async def _end_waiting(scene: Scene) -> ops.EndWaiting:
    pause = await _pause(scene)
    await scene.store.apply(pause)
    return ops.EndWaiting(turn_id=pause.lease.turn_id, detail="stopped", now=NOW)


async def _revoke(scene: Scene) -> ops.Revoke:
    decided = await scene.store.apply(await _decide(scene))
    assert decided is not None
    known = decided.approval
    return ops.Revoke(
        conversation_id=known.conversation_id, profile=known.profile, tool=known.question.tool
    )


async def _renew(scene: Scene) -> ops.Renew:
    await scene.running()
    return ops.Renew(owner="me", lease_until=200.0)


async def _recover(scene: Scene) -> ops.Recover:
    await scene.running()
    return scene.recover(retry=False)


async def _open_part(scene: Scene) -> ops.OpenPart:
    grant = await scene.running()
    return ops.OpenPart(lease=grant.lease, delivery_id=new_id("msg"), number=1, now=NOW)


async def _shown(scene: Scene) -> ops.Shown:
    grant = await scene.running()
    return scene.shown(grant, "so far")


async def _post(scene: Scene) -> ops.Post:
    return ops.Post(delivery=scene.notice())


async def _begin_send(scene: Scene) -> ops.BeginSend:
    return ops.BeginSend(delivery_id=await scene.owed(), attempt=1)


async def _end_send(scene: Scene) -> ops.EndSend:
    begin = await _begin_send(scene)
    await scene.store.apply(begin)
    return ops.EndSend(
        delivery_id=begin.delivery_id,
        state=DeliveryState.DELIVERED,
        native_id="9",
        shown="a notice",
        now=NOW,
    )


async def _press(scene: Scene) -> ops.Press:
    notice = attrs.evolve(scene.notice(), buttons=(Button("Yes", "s:1:0"),))
    await scene.store.apply(ops.Post(delivery=notice))
    inbound = attrs.evolve(scene.inbound(), kind=Kind.PRESS)
    received = await scene.store.apply(ops.Receive(inbound=inbound, now=NOW))
    return ops.Press(event_id=received.event_id, inbound=inbound, delivery_id=notice.id, number=0)


async def _begin_tool(scene: Scene) -> ops.BeginTool:
    return scene.begin_tool(await scene.running())


async def _end_tool(scene: Scene) -> ops.EndTool:
    grant = await scene.running()
    await scene.store.apply(scene.begin_tool(grant))
    return scene.end_tool(grant)


async def _append_records(scene: Scene) -> ops.AppendRecords:
    grant = await scene.running()
    return ops.AppendRecords(
        lease=grant.lease, namespace="transcript", batch=new_id("batch"), items=('"a"', '"b"')
    )


async def _keep_calls(scene: Scene) -> ops.KeepCalls:
    return scene.keep_calls(await scene.running())


async def _make_code(scene: Scene) -> ops.MakeCode:
    return scene.make_code()


async def _redeem(scene: Scene) -> ops.Redeem:
    await scene.store.apply(scene.make_code())
    return scene.redeem()


async def _set_role(scene: Scene) -> ops.SetRole:
    await scene.store.apply(await _pause(scene))
    await scene.store.apply(ops.SetRole(identity="stub:7", role=Role.USER, by="me", now=NOW))
    return scene.revoke("stub:7")


async def _link(scene: Scene) -> ops.Link:
    del scene
    return ops.Link(identity="stub:7", other="other:7", by="me", now=NOW)


async def _unlink(scene: Scene) -> ops.Unlink:
    await scene.store.apply(await _link(scene))
    return ops.Unlink(identity="stub:7", person="person_1", by="me", now=NOW)


async def _put_value(scene: Scene) -> ops.PutValue:
    del scene
    return ops.PutValue(component="memories.notes", name="a", value="1")


async def _delete_value(scene: Scene) -> ops.DeleteValue:
    await scene.store.apply(await _put_value(scene))
    return ops.DeleteValue(component="memories.notes", name="a")


SAMPLES: Final[dict[type[ops.Operation[Any]], Sample]] = {
    ops.Receive: Sample(_receive, lambda first: ops.Received(first.event_id, duplicate=True)),
    ops.Settle: Sample(_settle),
    ops.Merge: Sample(_merge),
    ops.Move: Sample(_move, lambda _: False),
    ops.Stop: Sample(_stop),
    ops.Accept: Sample(_accept),
    ops.Adopt: Sample(_adopt),
    ops.Absorb: Sample(_absorb),
    ops.Finish: Sample(_finish),
    ops.Pause: Sample(_pause),
    ops.Decide: Sample(_decide),
    ops.ClearCard: Sample(_clear_card),
    ops.Expire: Sample(_expire, lambda _: ()),
    ops.EndWaiting: Sample(_end_waiting),
    ops.Revoke: Sample(_revoke, lambda _: False),
    ops.Reset: Sample(_reset),
    ops.Resume: Sample(_resume),
    ops.Rename: Sample(_rename),
    ops.Undo: Sample(_undo),
    ops.Renew: Sample(_renew),
    ops.Recover: Sample(_recover, lambda _: ops.Recovered()),
    ops.OpenPart: Sample(_open_part),
    ops.Shown: Sample(_shown),
    ops.Post: Sample(_post),
    ops.BeginSend: Sample(_begin_send),
    ops.EndSend: Sample(_end_send),
    ops.Press: Sample(_press),
    ops.BeginTool: Sample(_begin_tool),
    ops.EndTool: Sample(_end_tool),
    ops.AppendRecords: Sample(_append_records),
    ops.KeepCalls: Sample(_keep_calls),
    ops.MakeCode: Sample(_make_code),
    ops.Redeem: Sample(_redeem),
    ops.SetRole: Sample(_set_role, lambda _: False),
    ops.Link: Sample(_link, lambda _: False),
    ops.Unlink: Sample(_unlink, lambda _: False),
    ops.PutValue: Sample(_put_value),
    ops.DeleteValue: Sample(_delete_value, lambda _: False),
}
