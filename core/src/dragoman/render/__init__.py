"""Rendering: what should be visible now, as pure functions of events, capabilities and time."""
