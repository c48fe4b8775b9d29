"""Plugins: what is installed, what the manifest's names mean, and the hooks of what was opened."""
