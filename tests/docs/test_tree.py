"""What the tree must and must not contain."""

import ast
import io
import re
import subprocess
import tokenize
import tomllib
from pathlib import Path

import dragoman

ROOT = Path(__file__).resolve().parents[2]

FORBIDDEN = re.compile(r"/root/|/home/\w+/|/work/|files\.pythonhosted|index-url|/simple/")
URL = re.compile(r"https?://([A-Za-z0-9.-]+)")
ALLOWED_HOSTS = {
    "127.0.0.1",
    "api.telegram.org",
    "json-schema.org",  # names the dialect of the schema; nothing is fetched
    "api.openai.com",
}


def tracked():
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout
    return [ROOT / name.decode() for name in listed.split(b"\0") if name]


def test_no_file_names_a_machine_or_a_package_index():
    for path in tracked():
        if path.is_file() and path != Path(__file__):
            found = FORBIDDEN.search(path.read_text(errors="replace"))
            assert not found, f"{path}: {found}"


def test_files_point_to_known_hosts_only():
    """Tests use names that cannot exist; lock files name none at all."""
    for path in tracked():
        if not path.is_file() or path == Path(__file__):
            continue
        for host in URL.findall(path.read_text(errors="replace")):
            invented = "." not in host or re.search(r"(^|\.)(example|invalid|test)(\.|$)", host)
            assert host in ALLOWED_HOSTS or invented, f"{path}: {host}"


def test_versions_move_together():
    """Every distribution has core's version, and every plugin's range admits it."""
    from packaging.requirements import Requirement

    projects = [
        tomllib.loads(path.read_text())["project"]
        for path in (ROOT / "core" / "pyproject.toml", *ROOT.glob("plugins/*/pyproject.toml"))
    ]
    (version,) = {project["version"] for project in projects}
    for project in projects[1:]:
        (needed,) = [
            Requirement(line) for line in project["dependencies"] if line.startswith("dragoman")
        ]
        assert needed.specifier.contains(version), project["name"]


def test_every_distribution_is_complete():
    for folder in (ROOT / "core", *(path.parent for path in ROOT.glob("plugins/*/pyproject.toml"))):
        assert (folder / "README.md").read_text().strip(), folder
        assert (folder / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()
        assert list(folder.glob("src/*/py.typed")), folder


def test_the_public_names_are_these():
    """Removing or renaming one breaks plugins; adding one is a decision."""
    public = sorted(
        name
        for name, value in vars(dragoman).items()
        if not name.startswith("_") and not hasattr(value, "__path__") and name.islower() is False
    )
    assert public == PUBLIC


PUBLIC = """
AccountMismatch Address ApprovalRequested Cancelled Capabilities CliCommand Clock Component
ComponentRecords Conflict ConversationKey ConversationView Deliver Dialect DragomanError Drop
EncodedInput Expired Failed FailureKind Finished Forbidden Gone Handoff Host Inbound InputConsumed
LengthUnit LongToolHint ManifestError Memory MemoryStore Moved NetworkPolicy NotSent Note Notice
Observation Outbound Paused Place PlainDialect Platform PlatformError PlatformStatus PluginError
RateLimited Receipt Records Refused RunEnd RunEvent Runtime RuntimeCapabilities RuntimeFailed
SchemaTooNew Scope ScopeRule Secret Sender Sink StaleLease StoreError StoreHeld StoreUnavailable
SystemClock TextBlock TextDelta Thinking ToolFinished ToolProgress ToolStarted Transport TurnEnded
TurnHost TurnInfo TurnInput TurnRequest TurnSink TurnStarted Unauthorized Unknown Usage Verdict
""".split()


def test_core_stays_small():
    """Core holds what every deployment needs: at most 9,000 lines of code without its test kit."""
    folder = ROOT / "core" / "src" / "dragoman"
    paths = [path for path in folder.rglob("*.py") if "testing" not in path.parts]
    assert sum(lines_of_code(path.read_text()) for path in paths) <= 9000


def lines_of_code(source):
    """How many lines hold code: not blank, no comment, no docstring."""
    docstrings = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            docstrings.update(range(node.lineno, node.end_lineno + 1))
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in (tokenize.OP, tokenize.NAME, tokenize.NUMBER, tokenize.STRING):
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - docstrings)
