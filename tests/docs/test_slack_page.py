"""The Slack plugin's README says what the code does."""

import runpy

from dragoman_slack.config import SlackConfig
from dragoman_slack.manifest import APP_MANIFEST


def test_the_table_of_capabilities_is_current(root):
    generator = runpy.run_path(str(root / "docs" / "generate.py"))
    page = root / "plugins" / "slack" / "README.md"
    assert page.read_text() == generator["slack"](), "run `make docs`"


def test_every_setting_and_the_apps_manifest_are_on_the_page(root, blocks):
    import attrs

    page = (root / "plugins" / "slack" / "README.md").read_text()
    for field in attrs.fields(SlackConfig):
        assert f"\n| `{field.name}` |" in page, field.name
    assert blocks("plugins/slack/README.md", "yaml") == [APP_MANIFEST]
