"""No file names a machine, a package index or a host that it has no business with."""

import re
import subprocess
from fnmatch import fnmatch

import pytest

# Written so that no pattern matches itself: this file is read as well.
FORBIDDEN = re.compile(
    r"/roo[t]/|/hom[e]/\w|/User[s]/\w|/wor[k]/|pypi\.or[g]|pythonhoste[d]|npmj[s]"
    r"|index-ur[l]|extra-inde[x]|/simpl[e]/"
)
ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*:[/]{2}([^\s\"'`<>()/?#,\\]*)", re.IGNORECASE)
LOOPBACK = re.compile(r"127\.0\.0\.1|localhost|\[::1\]")
RESERVED = re.compile(r"(.*\.)?(example(\.(com|org|net))?|invalid|test)")

ALLOWED = (
    ("plugins/telegram/*", "api.telegram.org"),
    ("tests/plugins/telegram/*", "api.telegram.org"),
    ("docs/manifest.md", "api.telegram.org"),
    ("plugins/discord/*", "discord.com"),
    ("docs/manifest.md", "discord.com"),
    ("plugins/slack/*", "slack.com"),
    ("plugins/slack/*", "api.slack.com"),
    ("tests/plugins/slack/*", "slack.com"),
    ("tests/plugins/slack/*", "files.slack.com"),
    ("docs/manifest.md", "slack.com"),
    ("plugins/openai_runtime/*", "api.openai.com"),
    ("core/src/dragoman/manifest/schema.py", "json-schema.org"),  # names a dialect of schemas
)
"""Which files may point to which host beyond this machine."""

LOCKS = ("requirements/*.txt", "*package-lock.json")


@pytest.fixture(scope="module")
def texts():
    """Every file of the tree that is tracked or could be, by its path."""
    from pathlib import Path

    root = Path(__file__).resolve().parents[2]
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        check=True,
    ).stdout
    names = [name.decode() for name in listed.split(b"\0") if name]
    assert "README.md" in names
    return {
        name: (root / name).read_text(errors="replace") for name in names if (root / name).is_file()
    }


def hosts(text):
    """The hosts of all addresses, without user, port and what only looks like one."""
    for found in ADDRESS.findall(text):
        host = re.sub(r":[\d{].*$", "", found.rpartition("@")[2]).rstrip(".;:")
        if "." in host or ":" in host:
            yield host


def allowed(name, host):
    """Whether a file may name a host: this machine, one that cannot exist, or one of the list."""
    if LOOPBACK.fullmatch(host) or RESERVED.fullmatch(host):
        return True
    return any(fnmatch(name, pattern) and host == known for pattern, known in ALLOWED)


def test_no_file_names_a_machine_or_a_package_index(texts):
    found = {name: match[0] for name, text in texts.items() if (match := FORBIDDEN.search(text))}
    assert found == {}


def test_files_point_to_known_hosts_only(texts):
    found = [
        (name, host)
        for name, text in texts.items()
        for host in hosts(text)
        if not allowed(name, host)
    ]
    assert found == []


def test_nothing_is_allowed_that_nobody_needs(texts):
    for pattern, host in ALLOWED:
        users = [name for name, text in texts.items() if fnmatch(name, pattern) and host in text]
        assert users, (pattern, host)


def test_lock_files_carry_no_address(texts):
    locks = {
        name: text
        for name, text in texts.items()
        if any(fnmatch(name, pattern) for pattern in LOCKS)
    }
    assert len(locks) >= 4
    assert {
        name for name, text in locks.items() if ":/" + "/" in text or "resolved" in text
    } == set()


def test_hosts_are_found_where_they_stand():
    slashes = "/" * 2
    text = (
        f"see https:{slashes}me:pw@chat.example.org:8443/x and http:{slashes}127.0.0.1:{{port}}/."
    )
    assert list(hosts(text)) == ["chat.example.org", "127.0.0.1"]
    assert list(hosts(f"HTTP:{slashes}evil.net, or http:{slashes} alone")) == ["evil.net"]
