"""What the loading of modules and the binding of objects have in common."""

from __future__ import annotations

import inspect

import pluggy


def unmarked_hooks(manager: pluggy.PluginManager, plugin: object) -> list[str]:
    """Return the names of known hooks that ``plugin`` has without the mark.

    They would be left out in silence: for a hook that refuses people, the worst failure there is.
    """
    return [
        name
        for name, caller in vars(manager.hook).items()
        if caller.has_spec()
        and manager.parse_hookimpl_opts(plugin, name) is None
        and inspect.getattr_static(plugin, name, None) is not None
    ]
