"""What the docs say that people see is what they see."""

import importlib.util


def test_the_transcripts_are_those_of_a_run(root):
    """B6: `make docs` writes the page."""
    path = root / "docs" / "transcripts.py"
    spec = importlib.util.spec_from_file_location("transcripts", path)
    transcripts = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(transcripts)
    assert transcripts.PAGE.read_text(encoding="utf-8") == transcripts.page()
