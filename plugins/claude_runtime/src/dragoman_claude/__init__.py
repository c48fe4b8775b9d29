"""Agents built with the Claude Agent SDK, as a runtime of dragoman."""
