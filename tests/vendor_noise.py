"""Warnings of vendors that tests let pass: each with the version it was seen in, and why."""

from typing import NamedTuple


class Noise(NamedTuple):
    filter: str
    """As pytest's ``filterwarnings`` takes it."""
    seen_in: str
    reason: str


VENDOR_NOISE: tuple[Noise, ...] = ()
