"""``docs/hooks.md`` names every hook with its arguments, and nothing else."""

import inspect
import re
import runpy

import pytest

from dragoman.hookspecs import Behaviour, Registration


@pytest.fixture
def page(root):
    return (root / "docs" / "hooks.md").read_text()


def hooks():
    """Every hook of the two classes, in order."""
    return [
        hook
        for specs in (Registration, Behaviour)
        for name, hook in vars(specs).items()
        if name.startswith("dragoman_")
    ]


def heading(hook):
    """A hook's colour, name and arguments, as a heading says them."""
    colour = "async def" if inspect.iscoroutinefunction(hook) else "def"
    arguments = [name for name in inspect.signature(hook).parameters if name != "self"]
    return f"{colour} {hook.__name__}({', '.join(arguments)})"


def test_every_hook_is_a_heading_with_its_arguments(page):
    """E1."""
    assert re.findall(r"^### `(.*)`$", page, re.MULTILINE) == [heading(hook) for hook in hooks()]


def test_every_behaviour_hook_says_its_shape(page):
    sections = re.split(r"^### ", page.partition("## Behaviour")[2], flags=re.MULTILINE)[1:]
    shapes = "ask|first|pipe|notify"
    silent = [each.split("\n")[0] for each in sections if not re.search(rf"\*({shapes})\*", each)]
    assert sections
    assert silent == []


def test_the_page_is_current(root, page):
    made = runpy.run_path(str(root / "docs" / "generate.py"))["PAGES"]["hooks.md"]()
    assert page == made, "run `make docs`"
