"""Pieces of a deployment that is going to be killed: a store that asks, a wire platform, and
runtimes that make files, offer answers, copy what they are sent, and tell what they know."""

from __future__ import annotations

from collections.abc import Iterable

from crashkit.clerk import Clerk, ClerkConfig, open_clerk
from crashkit.diary import Diary, DiaryConfig, open_diary
from crashkit.maker import Maker, MakerConfig, open_maker
from crashkit.store import StoreConfig, open_watched
from crashkit.wire import WireConfig, open_wire
from dragoman import Component, Platform, hookimpl
from dragoman.store.protocol import Store


@hookimpl
def dragoman_stores() -> Iterable[Component[StoreConfig, Store]]:
    """Register the store."""
    yield Component("crashstore", StoreConfig, open_watched)


@hookimpl
def dragoman_runtimes() -> Iterable[
    Component[MakerConfig, Maker] | Component[ClerkConfig, Clerk] | Component[DiaryConfig, Diary]
]:
    """Register the runtimes."""
    yield Component("maker", MakerConfig, open_maker)
    yield Component("clerk", ClerkConfig, open_clerk)
    yield Component("diary", DiaryConfig, open_diary)


@hookimpl
def dragoman_platforms() -> Iterable[Component[WireConfig, Platform]]:
    """Register the platform."""
    yield Component("wire", WireConfig, open_wire)
