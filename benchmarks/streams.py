"""What showing answers costs while they grow: CPU of rendering alone; prints a line of JSON.

python benchmarks/streams.py [--streams 100] [--seconds 10] [--rate 50]

Each stream writes Markdown at ``rate`` tokens a second, in messages of up to 4,000 characters, and
is looked at once a second, as a private chat is. No call is made: the model's deltas go in, what
should be visible comes out.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time

from dragoman import TextDelta
from dragoman.render.answer import Answer
from dragoman.render.pacing import Pace
from dragoman.render.preview import Preview, View
from dragoman.render.split import GrowingSplit
from dragoman.render.text import OpenText
from dragoman_telegram.blocks import Converter
from dragoman_telegram.dialect import TelegramDialect

PARAGRAPH = (
    "Here is what I found about **the garden** and its `sensors`: it is dry, says "
    "[the station](https://example.org/station), and it will stay so.\n\n"
    "- water the *tomatoes* first\n- then the beans\n\n```python\nfor bed in beds:\n    bed.water()\n```\n\n"
)
TOKENS = [token + " " for token in (PARAGRAPH * 8).split(" ")]
MESSAGE = 4000


class Stream:
    """One answer that grows, and begins anew when it is as long as a message."""

    def __init__(self, number: int) -> None:
        self.tokens = itertools.cycle(TOKENS[number * 7 % len(TOKENS) :] + TOKENS)
        self.looks = 0
        self.begin(0.0)

    def begin(self, now: float) -> None:
        self.answer = Answer(1 << 20)
        self.preview = Preview(self.answer, View(), Pace(1.0, 80, 1.0), OpenText(), now)
        self.changed: float | None = None
        self.parts: list[str] = []
        self.split = GrowingSplit(4048, DIALECT.length)

    def token(self, now: float) -> None:
        self.answer.feed(TextDelta("1", next(self.tokens)))
        self.preview.changed(now)
        if self.answer.size >= MESSAGE:
            self.begin(now)

    def look(self, now: float) -> None:
        if self.preview.due(now, shown=bool(self.parts), changed=self.changed) > 0:
            return
        mark = self.preview.mark(now)
        self.parts = self.split.parts(self.preview.source(now))
        DIALECT.sent(self.parts[-1], plain=False)  # as the adapter does
        self.preview.done(mark)
        self.changed, self.looks = now, self.looks + 1


DIALECT = TelegramDialect(Converter.load())


def main() -> None:
    """Run, and print the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--streams", type=int, default=100)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--rate", type=int, default=50)
    options = parser.parse_args()
    streams = [Stream(number) for number in range(options.streams)]
    for stream in streams:  # all of them in the middle of a message, each elsewhere
        for _ in range(hash(id(stream)) % 500):
            stream.token(0.0)
    begun = time.process_time()
    for tick in range(options.seconds * options.rate):
        now = (tick + 1) / options.rate
        for stream in streams:
            stream.token(now)
            stream.look(now)
    used = time.process_time() - begun
    looks = sum(stream.looks for stream in streams)
    print(
        json.dumps(
            {
                "streams": options.streams,
                "tokens_per_second": options.rate,
                "previews": looks,
                "cpu_seconds": round(used, 3),
                "share_of_one_core": round(used / options.seconds, 3),
                "ms_per_preview": round(1000 * used / max(looks, 1), 3),
            }
        )
    )


if __name__ == "__main__":
    main()
