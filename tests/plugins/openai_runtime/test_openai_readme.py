"""The README's table says what the configuration class says."""

import re
from pathlib import Path

import attrs

from dragoman import FailureKind
from dragoman_openai import OpenAIConfig, TurnContext

README = Path(__file__).parents[3] / "plugins" / "openai_runtime" / "README.md"


def first_cells(heading):
    section = README.read_text().split(f"## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"^\| `(\w+)` \|(?: ([^|]*) \|)?", section, re.MULTILINE)


def test_every_key_is_in_the_table_with_its_default():
    """E3."""
    rows = dict(first_cells("The table"))
    fields = attrs.fields_dict(OpenAIConfig)
    assert list(rows) == list(fields)
    for name, field in fields.items():
        if isinstance(field.default, int | float):
            shown = f"{field.default:g}" if not isinstance(field.default, bool) else "false"
            assert rows[name] == shown, name


def test_the_tables_that_it_shows_are_read_as_they_stand(tmp_path, monkeypatch):
    """E6."""
    from dragoman.manifest.load import inspect
    from dragoman.plugins.catalogue import Catalogue

    for name in ("OPENAI_API_KEY", "LEDGER_TOKEN", "REDIS_URL", "SESSION_KEY"):
        monkeypatch.setenv(name, "canary-" * 6)
    blocks = re.findall(r"```toml\n(.*?)```", README.read_text(), re.DOTALL)
    assert len(blocks) == 4
    for block in (block for block in blocks if 'plugin = "openai"' in block):
        runtime = re.search(r"\[runtimes\.(\w+)\]", block).group(1)
        profile = "" if "[profiles." in block else f'[profiles.default]\nruntime = "{runtime}"\n'
        path = tmp_path / "dragoman.toml"
        path.write_text(f"manifest = 1\n[platforms.console]\n{block}{profile}")
        assert inspect(path, Catalogue.installed()).problems == ()


def test_every_failure_in_the_table_exists():
    """D13."""
    kinds = {kind.value for kind in FailureKind} - {"budget"}  # this runtime has none
    named = {name for name, _ in first_cells("How a turn fails")}
    assert named == kinds


def test_the_context_is_described_whole():
    text = README.read_text()
    for field in attrs.fields(TurnContext):
        assert f"`{field.name}`" in text
