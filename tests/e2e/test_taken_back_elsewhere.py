"""Questions that are taken back, where the conversation's history is not in our own store."""

import pytest

from peers.desk import desk
from peers.wires import TelegramWire

pytestmark = pytest.mark.proof

PLACES = {
    "sqlite": 'backend = "sqlite"',
    "advanced-sqlite": 'backend = "advanced-sqlite"',
    "encrypted": 'backend = "sqlite"\nencrypt = { key = { env = "MODEL_KEY" } }',
}


@pytest.mark.parametrize("place", PLACES)
def test_fc_apr_04_the_model_is_told_wherever_the_history_is(place, tmp_path):
    """FC-APR-04, D3: once, between the calls and what is said next, in this turn and the next."""
    session = f"\n[runtimes.assistant.session]\n{PLACES[place]}\n"
    with desk(tmp_path, TelegramWire(2), "openai", session) as made:
        room = next(made.free)
        made.ask(room, "eve", "melt", "glue")
        made.wire.say(room, "/stop")
        made.until_said(room, "Stopped.")
        for said in ("do you remember?", "and now?"):
            answers = len(made.wire.shown(room))
            made.wire.say(room, said)
            made.until_more(room, answers)
            told = made.results("eve")
            assert len(told) == 2
            assert all("taken back" in one for one in told)
        kinds = [one.role for one in made.model.page.asked[-1]]
        assert kinds == ["user", "tool", "tool", "user", "assistant", "user"]
