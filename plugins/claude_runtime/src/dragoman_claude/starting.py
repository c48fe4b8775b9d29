"""Starting a session's program, on what the records have of its transcript."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import attrs
from anyio import to_thread
from anyio.abc import TaskGroup

from dragoman import Clock, Notice, Records, RuntimeFailed
from dragoman.runtimes import Feed
from dragoman_claude import history, pauses, results
from dragoman_claude.client import Client
from dragoman_claude.conversation import Conversation
from dragoman_claude.gate import Door, Gate, Rules
from dragoman_claude.history import State
from dragoman_claude.home import Home, Homes
from dragoman_claude.options import Recipe
from dragoman_claude.pool import Pool
from dragoman_claude.spending import Budget, Meter, Spent
from dragoman_claude.tools import Function, Toolbox
from dragoman_claude.transcript import Mirror, Transcript
from dragoman_claude.transcript_file import close_waiting, write_transcript

ANEW: Final = "The conversation was begun anew, with the newest of what was said in it."


@attrs.frozen(kw_only=True)
class Workshop:
    """What all turns of a runtime share."""

    recipe: Recipe
    rules: Rules
    functions: dict[str, Function]
    homes: Homes
    pool: Pool
    tasks: TaskGroup
    clock: Clock
    log: logging.Logger

    @property
    def local(self) -> bool:
        """Whether the program's own files are the transcripts."""
        return self.recipe.config.transcripts == "local"

    @property
    def budget(self) -> Budget:
        """What may be spent."""
        table = self.recipe.config.budget
        return Budget(table.turn, table.conversation)


@attrs.define(eq=False, kw_only=True)
class Start:
    """The start of a program for one turn, whose ``gate`` knows what the turn had paused for."""

    shop: Workshop
    session_id: str
    records: Records
    gate: Gate
    spent: Spent
    feed: Feed
    enter: Callable[[Conversation], None]
    """Lets what a program says, asks and calls reach the turn: it may do so at once."""
    model: str = ""
    """What people chose; empty for the runtime's own."""
    state: State | None = None
    """What the records say of the session on which the program was started."""

    async def begin(self) -> Conversation:
        """Start the program, on a new transcript where it does not know the one that there is."""
        try:
            return await self._start(await self.records.read())
        except Exception as error:
            if not results.is_lost(error):
                raise
        return await self._start(await self.anew())

    async def anew(self) -> list[str]:
        """Begin another transcript with what was said; return its items."""
        made = history.begun_anew(await self.records.read(), str(uuid.uuid4()))
        await self.records.new_generation(made)
        self.feed.put(Notice(ANEW))
        return made

    async def _start(self, items: Sequence[str]) -> Conversation:
        shop, state = self.shop, history.read_state(items)
        claude_id = state.id
        if self.gate.waiting is not None:
            self.gate.waiting.check(claude_id)
        if claude_id is None or (shop.local and not state.resumable):
            claude_id = str(uuid.uuid4())
            await self.records.append([history.chosen(claude_id)])
        home = shop.homes.home(self.session_id, lasting=shop.local)
        one = Conversation(
            client=Client(home, shop.clock, shop.log),
            transcript=Transcript(claude_id, shop.clock, state.newest, local=shop.local),
            door=Door(),
            toolbox=Toolbox(shop.functions, shop.log),
            meter=Meter(self.spent.totals if shop.local else {}),
            model=self.model,
        )
        self.enter(one)
        if state.newest is not None and self.gate.waiting is None:
            items = [*items, *await self._withdraw(home, claude_id, state.newest, items)]
            state = history.read_state(items)
        self.state = state
        if state.resumable and not shop.local:
            write = partial(write_transcript, home.config, home.workspace, claude_id, items)
            await to_thread.run_sync(write)
        options = shop.recipe.options(
            home=home,
            session_id=claude_id,
            model=self.model,
            resumed=state.resumable,
            behind=state.newest if state.resumable and shop.local else None,
            mirror=Mirror(one.transcript),
            server=one.toolbox.server(),
            hooks=one.door.hooks(),
            stderr=one.client.heard,
            allowance=shop.budget.ceiling(self.spent, one.meter.cost),
        )
        try:
            await one.client.start(shop.tasks, options, shop.recipe.config.programs.start_timeout)
        except Exception as error:
            if results.is_lost(error):
                raise
            failed = results.failure_of(error, one.client.last_words)
            raise RuntimeFailed(failed.kind, failed.detail) from error
        return one

    async def _withdraw(
        self, home: Home, claude_id: str, newest: str, items: Sequence[str]
    ) -> list[str]:
        """Close what waits for a decision that nobody will make; return the items of that."""
        if self.shop.local:
            close = partial(close_waiting, home.config, home.workspace, claude_id, newest)
            closed = [
                history.mark(each["uuid"], told=False) for each in await to_thread.run_sync(close)
            ]
        else:
            lines = history.entries(items).get(None, [])
            made = pauses.withdrawn(lines, newest)
            closed = [history.entry_item(each, None) for each in made]
        if closed:
            await self.records.append(closed)
        return closed
