"""``python -m rendering FIRST LAST``: splits the documents of these seeds; prints what was found."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable

from dragoman.render.split import split
from rendering.documents import make
from rendering.judge import Wrong, check


def judged(seeds: Iterable[int], most: int = 3) -> dict[str, object]:
    """Split the documents of seeds and return figures; ends when ``most`` of them are wrong."""
    cuts: Counter[str] = Counter()
    wrong: list[str] = []
    documents = parts = characters = 0
    longest = {"64-300": 0.0, "301-2000": 0.0, "2001-40000": 0.0}
    for seed in seeds:
        document = make(seed)
        text, limit = document.text, document.limit
        documents, characters = documents + 1, characters + len(text)
        size = "64-300" if limit <= 300 else "301-2000" if limit <= 2000 else "2001-40000"
        longest[size] = max(longest[size], document.unit.measure(text) / limit)
        try:
            found = split(text, limit, document.unit.measure)
            parts += len(found)
            cuts.update(check(document, found))
        except Wrong as error:
            wrong.append(f"seed {seed}, limit {limit} {document.unit.value}: {error}")
            if len(wrong) == most:
                break
    return {
        "documents": documents,
        "parts": parts,
        "characters": characters,
        "longest": {size: round(ratio, 1) for size, ratio in longest.items()},
        "cuts": dict(cuts.most_common()),
        "wrong": wrong,
    }


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="rendering", description=__doc__)
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int)
    parser.add_argument("--most", type=int, default=3, help="how many wrong documents end it")
    options = parser.parse_args()
    figures = judged(range(options.first, options.last), options.most)
    json.dump(figures, sys.stdout)
    return 1 if figures["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
