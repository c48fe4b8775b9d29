"""What pages say of other files is so."""

import re

from dragoman.cli.main import EXIT_CODES


def test_every_link_leads_somewhere(pages):
    for page in pages:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page}: {target}"


def test_every_file_of_the_architecture_exists(root):
    text = (root / "docs" / "architecture.md").read_text()
    named = re.findall(r"`([a-z_]+/(?:[a-z_]+\.py)?|[a-z_]+\.py)`", text)
    assert named
    for name in named:
        assert (root / "core" / "src" / "dragoman" / name).exists(), name


def test_every_state_is_in_the_architecture(root):
    from dragoman.states import DeliveryState, EventState, TurnState

    text = (root / "docs" / "architecture.md").read_text().partition("## States")[2]
    for states in (EventState, TurnState, DeliveryState):
        for state in states:
            assert re.search(rf"\b{state.value}\b", text), state


def test_operations_lists_the_programs_exit_codes(root):
    text = (root / "docs" / "operations.md").read_text()
    assert set(re.findall(r"^  (\d+) ", EXIT_CODES, re.MULTILINE)) == set(
        re.findall(r"^\| (\d+) \|", text, re.MULTILINE)
    )


def test_the_line_to_break_and_its_test_exist(root, blocks):
    """The way to see a test fail can be followed as it is written."""
    (line,) = blocks("CONTRIBUTING.md", "python")
    (command,) = blocks("CONTRIBUTING.md", "console")
    text = (root / "CONTRIBUTING.md").read_text()
    (source,) = re.findall(r"`(core/src/[a-z_/]+\.py)`", text)
    assert line.strip() in (root / source).read_text()
    file, name = re.search(r"(tests/\S+\.py) -k (\w+)", command).groups()
    assert f"def {name}" in (root / file).read_text()
