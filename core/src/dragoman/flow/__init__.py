"""The way of an event: intake, admission, routing, turns, and back out."""
