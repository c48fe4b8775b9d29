"""Version ranges, as far as a plugin states which dragoman it works with.

Only what the check before an import needs: comparisons of release numbers. It never excludes a
version that an installer would admit; what it cannot judge is left to the installer.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import attrs


@attrs.frozen
class _Version:
    """Release numbers without trailing zeros; ``plain`` when nothing follows them."""

    release: tuple[int, ...]
    plain: bool

    @classmethod
    def parse(cls, text: str) -> _Version | None:
        found = _VERSION.fullmatch(text.strip())
        if found is None:
            return None
        numbers = [int(part) for part in found["release"].split(".")]
        while numbers and not numbers[-1]:
            numbers.pop()
        return cls(tuple(numbers), plain=not found["rest"])


def admits(specifiers: str, version: str) -> bool:
    """Say whether comma-separated specifiers admit a version, by release numbers.

    A pre-, post- or development release is taken as equal to its release where that decides.
    """
    running = _Version.parse(version)
    if running is None:
        return True
    return all(_holds(part, running) for part in specifiers.split(",") if part.strip())


def required_range(requirements: Iterable[str], distribution: str) -> str:
    """Return the specifiers that apply to ``distribution``, comma-separated; empty for none.

    Requirements with a marker or an address are left to the installer.
    """
    ranges = []
    for requirement in requirements:
        found = _REQUIREMENT.fullmatch(requirement)
        if found and normalised(found["name"]) == normalised(distribution):
            ranges.append(found["range"].replace(" ", ""))
    return ",".join(filter(None, ranges))


def release_of(version: str) -> tuple[int, ...]:
    """Return a version's release numbers, for sorting; empty when it has none."""
    parsed = _Version.parse(version)
    return parsed.release if parsed else ()


def normalised(distribution: str) -> str:
    """Return the one spelling of a distribution's name."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


def _holds(specifier: str, running: _Version) -> bool:
    found = _SPECIFIER.fullmatch(specifier.strip())
    if found is None:
        return True
    sign, text = found["operator"], found["version"].strip()
    if text.endswith(".*"):
        within = _starts_with(running.release, _numbers(text[:-2]))
        return within if sign == "==" else not within
    bound = _Version.parse(text)
    if bound is None:
        return True
    if running.release == bound.release and not (running.plain and bound.plain):
        return True
    if sign == "~=":
        prefix = _numbers(_RELEASE.match(text)[0])[:-1]  # type: ignore[index]  # it parsed above
        return running.release >= bound.release and _starts_with(running.release, prefix)
    return _COMPARE[sign](running.release, bound.release)


def _starts_with(release: tuple[int, ...], prefix: tuple[int, ...]) -> bool:
    padded = release + (0,) * (len(prefix) - len(release))
    return padded[: len(prefix)] == prefix


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.removeprefix("v").split("."))


_COMPARE: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_VERSION = re.compile(r"v?(?P<release>\d+(?:\.\d+)*)(?P<rest>.*)", re.ASCII)
_RELEASE = re.compile(r"v?\d+(?:\.\d+)*", re.ASCII)
_SPECIFIER = re.compile(
    r"(?P<operator>==|!=|<=|>=|<|>|~=)(?P<version>\s*v?\d+(?:\.\d+)*(?:\.\*|[^*]*))", re.ASCII
)
_REQUIREMENT = re.compile(
    r"\s*(?P<name>[A-Za-z0-9._-]+?)\s*(?:\[[^\]]*\])?\s*\(?(?P<range>(?:[<>=!~][^;@()]*)?)\)?\s*"
)
