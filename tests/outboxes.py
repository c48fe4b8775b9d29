"""The outbox of a running gateway, for tests that owe something themselves."""

import gc

from dragoman.outbox.outbox import Outbox
from stage import Stage


def outbox_of(stage: Stage) -> Outbox:
    """Return the outbox of a stage's gateway."""
    [found] = [
        one for one in gc.get_objects() if isinstance(one, Outbox) and one._store is stage.app.store
    ]
    return found
