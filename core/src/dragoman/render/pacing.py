"""When a growing answer is shown next: the pace that a platform bears."""

from __future__ import annotations

import attrs


@attrs.frozen
class Pace:
    """The rhythm of one streamed answer. Times are seconds of one clock.

    A first text waits until it has ``first_chars`` characters or ``first_delay`` has passed since
    its first one. Between two visible changes lie ``interval`` seconds, counted from the moment
    at which the earlier one had *ended*: a slow platform is asked less often.
    """

    interval: float = attrs.field(validator=attrs.validators.ge(0))
    first_chars: int = attrs.field(validator=attrs.validators.ge(0))
    first_delay: float = attrs.field(validator=attrs.validators.ge(0))

    def due(
        self,
        now: float,
        *,
        pending: int,
        since: float,
        shown: bool,
        changed: float | None = None,
        not_before: float | None = None,
        ended: bool = False,
    ) -> float | None:
        """Return when to show what is pending: ``now`` when it is due, ``None`` for no change.

        ``pending`` is how many characters are not shown yet; it is at least one where shown text
        has become another, and zero only where an edit would change nothing. ``since`` is when
        the first of them came, ``shown`` whether any text of the answer is visible, ``changed``
        when the latest visible change of the chat ended, ``not_before`` what a rate limit asks
        for: it wins over everything. An answer that has ``ended`` waits for no more characters.
        """
        if pending <= 0:
            return None
        at = now
        if not (shown or ended or pending >= self.first_chars):
            at = since + self.first_delay
        if changed is not None:
            at = max(at, changed + self.interval)
        if not_before is not None:
            at = max(at, not_before)
        return max(at, now)
