"""The manifest: read, checked and explained before anything starts."""
