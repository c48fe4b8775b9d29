"""The store's contract for codes and accounts: what a code is good for, and what a guess costs."""

from __future__ import annotations

import attrs
import pytest

from dragoman.roles import Role
from dragoman.states import DeliveryState
from dragoman.store import operations as ops
from dragoman.store.accounts import (
    CODE_SECONDS,
    CODES,
    FAILURES,
    LOCKED_SECONDS,
    MISSES,
    PAUSE_SECONDS,
    WINDOW_SECONDS,
)
from dragoman.testing.store_rows import contents, event_states
from dragoman.testing.store_scene import NOW, OpenStore, Scene, together

USED = ops.Redeemed(identity="stub:7")
WRONG = ops.Redeemed()
LOCKED = ops.Redeemed(locked=True)


class AccountsSuite:
    """A part of `dragoman.testing.store.StoreSuite`."""

    async def test_a_code_lets_in_whom_it_was_made_for_once(self, open_store: OpenStore) -> None:
        """FC-PAI-01: whoever says it; the account is told, and no one else is let in by it."""
        async with open_store() as store:
            scene = Scene(store)
            assert await store.apply(scene.make_code()) is True
            first, late = await together(store, scene.redeem(), scene.redeem(actor="stub:2"))
            assert (first, late) == (USED, WRONG)
            assert list(await store.read.identities()) == [
                ops.Identity("stub:7", "stub:7", Role.USER, "Ann")
            ]
            notices = [part.text for part in await store.read.owed(None, 10)]
            assert notices == ["a notice", "come in"]

    @pytest.mark.parametrize(
        "wrong",
        [
            {"verifier": "BBBBBB"},
            {"selector": "BBBBBB"},
            {"actor": "stub:7"},
            {"now": NOW + CODE_SECONDS},
        ],
        ids=["secret", "name", "own", "late"],
    )
    async def test_what_is_wrong_is_wrong_in_one_way(
        self, open_store: OpenStore, wrong: dict[str, str]
    ) -> None:
        """FC-PAI-01: the answer does not tell whether there is such a code."""
        async with open_store() as store:
            scene = Scene(store)
            await store.apply(scene.make_code())
            assert await store.apply(scene.redeem(**wrong)) == WRONG  # type: ignore[arg-type]
            assert list(await store.read.identities()) == []

    async def test_who_guesses_is_locked_and_gets_nothing_for_the_right_code(
        self, open_store: OpenStore
    ) -> None:
        """FC-PAI-01: the lock is asked first; others are not locked, and it ends in time."""
        async with open_store() as store:
            scene = Scene(store)
            await store.apply(scene.make_code())
            guesses = [scene.redeem(verifier="BBBBBB") for _ in range(FAILURES)]
            told = [await store.apply(guess) for guess in guesses]
            assert told == [WRONG] * (FAILURES - 1) + [LOCKED]
            assert await store.apply(guesses[-1]) == LOCKED
            almost = NOW + LOCKED_SECONDS - 1
            before = await contents(store)
            assert await store.apply(scene.redeem(now=almost)) == LOCKED
            assert await contents(store) == before
            assert await store.apply(scene.redeem(now=almost + 1)) == USED

    async def test_failures_are_forgotten_after_a_while_and_with_a_right_code(
        self, open_store: OpenStore
    ) -> None:
        """Who mistypes now and then is not locked."""
        async with open_store() as store:
            scene = Scene(store)
            for number in range(2 * FAILURES):
                now = NOW + number * WINDOW_SECONDS / (FAILURES - 1)
                assert await store.apply(scene.redeem(now=now)) == WRONG
            await store.apply(scene.make_code())
            for _ in range(FAILURES - 1):
                assert await store.apply(scene.redeem(verifier="B", actor="stub:2")) == WRONG
            assert await store.apply(scene.redeem(actor="stub:2")) == USED
            assert await store.apply(scene.redeem(actor="stub:2")) == WRONG

    async def test_a_code_survives_only_so_many_guesses_of_all(self, open_store: OpenStore) -> None:
        """FC-PAI-01: many who guess at one code together make it worthless."""
        async with open_store() as store:
            scene = Scene(store)
            await store.apply(scene.make_code())
            for number in range(MISSES):
                guess = scene.redeem(verifier="B", actor=f"stub:{number}")
                assert await store.apply(guess) == WRONG
            assert await store.apply(scene.redeem(actor="stub:owner")) == WRONG

    async def test_codes_are_given_with_pauses_and_not_for_ever(
        self, open_store: OpenStore
    ) -> None:
        """FC-PAI-01: a few in a row, the last of which counts; what others ask takes none away."""
        async with open_store() as store:
            scene = Scene(store)
            times = [NOW + number * PAUSE_SECONDS for number in range(CODES + 1)]
            for number, now in enumerate(times):
                code = scene.make_code(f"AAAAA{number}", now=now)
                assert await store.apply(code) is (number < CODES)
                soon = scene.make_code("SOON", now=now + PAUSE_SECONDS - 1)
                assert await store.apply(soon) is False
            strangers = [scene.make_code(f"S{n}", f"stub:s{n}") for n in range(200)]
            assert await together(store, *strangers) == [True] * 200
            assert await store.apply(scene.redeem("AAAAA0")) == WRONG
            assert await store.apply(scene.redeem(f"AAAAA{CODES - 1}")) == USED
            late = scene.make_code("LATE", now=NOW + 2 * CODE_SECONDS)
            assert await store.apply(late) is True
            assert [row[0] for row in (await contents(store))["codes"]] == ["LATE"]

    async def test_a_code_is_not_kept_once_it_was_shown(self, open_store: OpenStore) -> None:
        """FC-PAI-01: neither as what was to be shown, nor as what a platform quotes."""
        async with open_store() as store:
            scene = Scene(store)
            code = scene.make_code()
            await store.apply(code)
            await store.apply(ops.BeginSend(delivery_id=code.notice.id, attempt=1))
            sent = ops.EndSend(
                delivery_id=code.notice.id,
                state=DeliveryState.DELIVERED,
                native_id="9",
                shown=code.notice.text,
                now=NOW,
            )
            assert code.notice.text in str(await contents(store))
            await store.apply(sent)
            assert code.notice.text not in str(await contents(store))

    async def test_what_an_operator_gave_stays_with_a_code(self, open_store: OpenStore) -> None:
        """A code adds to what an account may, and takes nothing."""
        async with open_store() as store:
            scene = Scene(store)
            await store.apply(scene.make_code())
            given = ops.SetRole(identity="stub:7", role=Role.OPERATOR, by="me", now=NOW)
            assert await store.apply(given) is True
            await store.apply(scene.redeem())
            (known,) = await store.read.identities()
            assert known.role is Role.OPERATOR

    async def test_who_is_let_out_decides_nothing_and_waits_for_nothing(
        self, open_store: OpenStore
    ) -> None:
        """FC-AUT-04: questions of turns that were asked for by that account are over with it."""
        async with open_store() as store:
            scene = Scene(store)
            pause = scene.pause(await scene.running())
            await store.apply(pause)
            await store.apply(scene.make_code())
            other = attrs.evolve(scene.revoke("stub:7"), platforms=("another",))
            for harmless in (other, scene.revoke("stub:8"), scene.revoke("other:7")):
                assert await store.apply(harmless) is False
            assert await store.apply(scene.decide(pause)) is not None
        async with open_store() as store:
            scene = Scene(store)
            pause = scene.pause(await scene.running())
            await store.apply(pause)
            later = await scene.waiting()
            await store.apply(scene.revoke("stub:7"))
            assert (await event_states(store))[later] == "refused"
            late = await store.apply(scene.decide(pause))
            assert late is not None
            assert (late.won, late.approval.verdict.value) == (False, "cancelled")
            assert "it ended" in [part.text for part in await store.read.owed(None, 10)]
            assert await store.apply(scene.redeem()) == WRONG

    async def test_accounts_of_two_persons_become_one_persons(self, open_store: OpenStore) -> None:
        """All of them; and one that is taken out again is a person of its own."""
        async with open_store() as store:
            pairs = [("a:1", "b:1"), ("c:1", "d:1"), ("b:1", "d:1")]
            for one, other in pairs:
                link = ops.Link(identity=one, other=other, by="me", now=NOW)
                assert await store.apply(link) is True
            assert {one.person for one in await store.read.identities()} == {"a:1"}
            await store.apply(ops.Unlink(identity="a:1", person="person_1", by="me", now=NOW))
            persons = {one.identity: one.person for one in await store.read.identities()}
            assert persons == {"a:1": "person_1", "b:1": "a:1", "c:1": "a:1", "d:1": "a:1"}
