"""How fast texts are split and previews are made; prints lines of JSON.

python benchmarks/split.py
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Final

from dragoman.capabilities import LengthUnit
from dragoman.render.split import GrowingSplit, split
from dragoman.render.text import Preview, close_open_constructs

LIMIT: Final = 4096
TEXTS: Final = {
    "prose": "Some **words** make a sentence, and [a link](https://example.org/x). " * 5 + "\n\n",
    "cjk": "日本語の文章です。",
    "code": "```python\n" + "    value = compute(item)\n" * 40 + "```\n\nText between.\n\n",
    "table": "| item | link |\n|---|---|\n" + "| a | [b](https://example.org) |\n" * 200 + "\n",
    "list": "- item of a list\n  - with one inside it\n    - and another\n",
    "marks": "*a _b `c ~~d [e](",
}


def seconds(work: Callable[[], object]) -> float:
    """Return the CPU time of the best of three runs."""
    times = []
    for _ in range(3):
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    return min(times)


def grow(text: str, step: int) -> float:
    """Return the longest time that a preview and its parts took while a text grew."""
    preview, parts = Preview(), GrowingSplit(LIMIT, LengthUnit.UTF16.measure)
    longest = 0.0
    for size in range(step, len(text), step):
        began = time.process_time()
        parts.parts(preview.shown(text[:size]))
        longest = max(longest, time.process_time() - began)
    return longest


def main() -> None:
    """Measure and print."""
    measure = LengthUnit.UTF16.measure
    for name, block in TEXTS.items():
        small, large = (block * (size // len(block)) for size in (1 << 18, 1 << 20))
        quarter = seconds(lambda text=small: split(text, LIMIT, measure))
        whole = seconds(lambda text=large: split(text, LIMIT, measure))
        shown = block * (4000 // len(block))
        figures = {
            "text": name,
            "split_quarter_mb_seconds": round(quarter, 3),
            "split_mb_seconds": round(whole, 3),
            "preview_4000_ms": round(1000 * seconds(lambda t=shown: close_open_constructs(t)), 2),
            "growing_quarter_mb_longest_ms": round(1000 * grow(small, 4000), 2),
        }
        print(json.dumps(figures))


if __name__ == "__main__":
    main()
