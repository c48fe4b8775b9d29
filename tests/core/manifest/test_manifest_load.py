"""The whole manifest: what it means, and everything that can be wrong with it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dragoman.manifest.load import inspect

if TYPE_CHECKING:
    from conftest import Reader, SmallCatalogue

NO_NAMES = (
    "names grant nothing, because they change hands: use the immutable id "
    "(people see their own with /whoami)"
)


def test_a_good_manifest_becomes_values_with_paths_from_its_own_directory(
    read_text: Reader, good: str, tmp_path: Path, canary: str
) -> None:
    found = read_text(
        good.replace("manifest = 1", 'manifest = 1\nstore = ":memory:"')
        + """\
users = [2, " chat:2 "]
[profiles.ops]
runtime = "plain"
scope = { dm = "channel", group = "user" }
[[routes]]
profile = "ops"
channel = -100
[network]
ca_file = "ca.pem"
"""
    )
    assert found.problems == ()
    manifest = found.manifest
    assert manifest is not None
    assert manifest.data_dir == tmp_path / ".dragoman"
    assert manifest.store == ":memory:"
    assert manifest.network.ca_file == tmp_path / "ca.pem"
    assert [each.name for each in manifest.components] == ["platforms.chat", "runtimes.plain"]
    assert manifest.components[0].config.token.reveal() == canary
    assert manifest.components[0].config.cache == tmp_path / "cache"
    assert manifest.components[0].config.url == "http://localhost"
    assert manifest.profiles["ops"].scope.group.value == "user"
    assert manifest.routes[0].channel == "-100"
    assert manifest.access.users == ("chat:2",)


def test_components_keep_the_order_of_the_file(read_text: Reader, good: str) -> None:
    found = read_text(good + "[extensions.plain]\n[platforms.other]\n[memories.plain]\n")
    assert found.manifest is not None
    assert [each.kind for each in found.manifest.components] == [
        "platforms",
        "runtimes",
        "extensions",
        "platforms",
        "memories",
    ]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (None, "dragoman.toml: there is no such file — `dragoman init` writes one"),
        (b"a = 1\nb = \xff\n", "dragoman.toml:2: not UTF-8; save the file with that encoding"),
        (b"a = 1\nb = \n", "dragoman.toml:2: not TOML: Invalid value"),
        (b"a = 1\nb = [1", "dragoman.toml:2: not TOML: Unclosed array"),
        (b"a = " + b"[" * 5000, "dragoman.toml: arrays or tables are nested too deeply"),
        (b"a = " + b"9" * 5000, "dragoman.toml: not TOML: a number has too many digits"),
        (
            b"manifest = 2\nx = 1",
            "dragoman.toml:1: manifest: version 2 is not known; this dragoman reads 1",
        ),
    ],
)
def test_a_file_that_cannot_be_understood_is_one_problem(
    tmp_path: Path,
    catalogue: SmallCatalogue,
    monkeypatch: pytest.MonkeyPatch,
    data: bytes | None,
    problem: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    if data is not None:
        Path("dragoman.toml").write_bytes(data)
    found = inspect(Path("dragoman.toml"), catalogue, {})
    assert [str(each) for each in found.problems] == [problem]


def test_a_byte_order_mark_and_windows_lines_are_read(
    tmp_path: Path, catalogue: SmallCatalogue, good: str, canary: str
) -> None:
    path = tmp_path / "m.toml"
    path.write_bytes(b"\xef\xbb\xbf" + good.replace("\n", "\r\n").encode())
    assert inspect(path, catalogue, {"TOKEN": canary}).manifest is not None


@pytest.mark.parametrize(
    ("old", "new", "problems"),
    [
        ("manifest = 1\n", "", ["1: manifest: write `manifest = 1`: the version of this format"]),
        ("manifest = 1", "manifest = true", ["1: manifest: expected an integer, got a boolean"]),
        ("[access]", "[acess]", ["7: acess: unknown key — did you mean 'access'?"]),
        ("[access]", "[limits]\ngrace = -1\n[access]", ["8: limits.grace: must be >= 0"]),
        (
            "[platforms.chat]",
            "[platforms.Chat]",
            ["2: platforms.Chat: an id is 1 to 32 of a-z, 0-9, _ and -, and begins with a letter"],
        ),
        (
            "[runtimes.plain]",
            '[runtimes.plain]\nplugin = "nope"',
            ["4: runtimes.plain: plugin 'nope': not installed — pip install dragoman-nope"],
        ),
        (
            'runtime = "plain"',
            'runtime = "plian"',
            ["6: profiles.default.runtime: names no [runtimes.<id>] table — did you mean 'plain'?"],
        ),
        (
            'runtime = "plain"',
            'runtime = "plain"\nmemory = "m"',
            ["7: profiles.default.memory: names no [memories.<id>] table"],
        ),
        (
            'runtime = "plain"',
            'runtime = "plain"\nbusy = "que"',
            [
                (
                    "7: profiles.default.busy: expected one of 'queue', 'collect', 'steer', "
                    "'interrupt' — did you mean 'queue'?"
                )
            ],
        ),
        (
            "[profiles.default]",
            '[profiles.a]\nruntime = "plain"\n[profiles.b]',
            ["5: profiles: with several profiles, one of them has to be called 'default'"],
        ),
        (
            '[profiles.default]\nruntime = "plain"\n',
            "",
            ["1: profiles: at least one [profiles.<id>] table is needed"],
        ),
        (
            "[access]",
            '[[routes]]\nprofile = "x"\nplatform = "chta"\nuser = "@x y"\n[access]',
            [
                "8: routes[0].profile: names no [profiles.<id>] table",
                "9: routes[0].platform: names no [platforms.<id>] table — did you mean 'chat'?",
                f"10: routes[0].user: {NO_NAMES}",
            ],
        ),
        (
            "[profiles.default]",
            '[profiles.default]\napprovers = ["requester", "@owner_name"]\nallow = ["chat:@x"]',
            [
                f"6: profiles.default.approvers[1]: {NO_NAMES}",
                f"7: profiles.default.allow[0]: {NO_NAMES}",
            ],
        ),
        ("[access]", "[[routes]]\n[access]", ["7: routes[0].profile: this key is required"]),
        (
            "manifest = 1",
            "manifest = 1\nroutes = 3",
            ["2: routes: expected an array of tables, got an integer"],
        ),
        ("manifest = 1", "manifest = 1\nruntimes = 3", None),
        (
            'owners = ["chat:1"]',
            'admit_by = ["gate", "platforms.chat"]',
            ["8: access.admit_by[0]: names no component of this manifest"],
        ),
        (
            'owners = ["chat:1"]',
            'admit_by = ["gate", 3]',
            [
                "8: access.admit_by[0]: names no component of this manifest",
                "8: access.admit_by[1]: expected a string, got an integer",
            ],
        ),
        (
            'owners = ["chat:1"]',
            'owners = "chat:1"',
            ["8: access.owners: expected an array, got a string"],
        ),
    ],
)
def test_a_mistake_is_reported_at_its_line(
    read_text: Reader, good: str, old: str, new: str, problems: list[str] | None
) -> None:
    """E3: file, line, key and a suggestion."""
    text = good.replace("[runtimes.plain]\n", "") if problems is None else good
    found = read_text(text.replace(old, new))
    if problems is None:
        problems = [
            "2: runtimes: expected a table, got an integer",
            "6: profiles.default.runtime: names no [runtimes.<id>] table",
        ]
    assert [str(each) for each in found.problems] == [f"dragoman.toml:{each}" for each in problems]
    assert found.manifest is None


ROUTE = '[[routes]]\nprofile = "default"\n'


@pytest.mark.parametrize(
    ("first", "second", "conflict"),
    [
        ("channel = 1", 'channel = "1"', True),
        ("", "", True),
        ('channel = "1"\nplatform = "chat"', 'platform = "chat"\nchannel = 1', True),
        ("channel = 1", "channel = 2", False),
        ("channel = 1", "thread = 1", False),
        ("channel = 1", 'channel = 1\nplatform = "chat"', False),
    ],
)
def test_two_routes_that_claim_one_event_with_equal_right_are_an_error(
    read_text: Reader, good: str, first: str, second: str, conflict: bool
) -> None:
    """A7: most specific wins, so equally specific routes must differ."""
    found = read_text(f"{good}{ROUTE}{first}\n{ROUTE}{second}\n")
    line = 12 + first.count("\n")
    assert [str(each) for each in found.problems] == (
        [f"dragoman.toml:{line}: routes[1]: matches the same as routes[0] in line 9; keep one"]
        if conflict
        else []
    )


def test_an_optional_table_with_a_broken_plugin_is_left_out_with_a_warning(
    read_text: Reader, good: str
) -> None:
    """E2: a broken plugin spares the rest."""
    found = read_text(good + "[platforms.gone]\noptional = true\n")
    assert found.manifest is not None
    assert [each.name for each in found.manifest.components] == ["platforms.chat", "runtimes.plain"]
    assert "platforms.gone: left out: plugin 'gone'" in str(found.warnings[0])


def test_what_needs_a_table_that_is_left_out_is_an_error(read_text: Reader, good: str) -> None:
    found = read_text(
        good.replace("[runtimes.plain]", "[runtimes.plain]\nplugin = 'nope'\noptional = true")
        + f'admit_by = ["platforms.gone"]\n{ROUTE}platform = "gone"\n'
        + "[platforms.gone]\noptional = true\n"
    )
    assert [each.path for each in found.problems] == [
        "profiles.default.runtime",
        "access.admit_by[0]",
        "routes[0].platform",
    ]
    assert all("left out" in each.message for each in found.problems)


def test_without_any_usable_platform_there_is_nothing_to_run(read_text: Reader, good: str) -> None:
    found = read_text(good.replace("[platforms.chat]", "[platforms.gone]\noptional = true"))
    assert [each.path for each in found.problems] == ["platforms"]
    found = read_text(good.replace("[platforms.chat]\ntoken", "[network]\n#"))
    assert [each.path for each in found.problems] == ["platforms"]


def test_doubtful_things_are_warnings(read_text: Reader, good: str) -> None:
    found = read_text(good + 'users = ["chta:1"]\n[runtimes.agent]\ninstructions = "x"\n')
    assert [str(each) for each in found.warnings] == [
        (
            "dragoman.toml:9: access.users[0]: "
            "no platform of kind 'chta' is configured — did you mean 'chat'?"
        ),
        "dragoman.toml:10: runtimes.agent: no profile uses this table",
    ]
    found = read_text(good.replace('owners = ["chat:1"]', ""))
    assert [each.path for each in found.warnings] == ["access"]
    assert "nobody may talk to the agents yet" in found.warnings[0].message
    found = read_text(good.replace('owners = ["chat:1"]', "pairing = true"))
    assert found.warnings == (), "whoever asks can be let in"
    shared = "\n[profiles.default.scope]\n{} = 'person'\n"
    assert read_text(good + shared.format("dm")).problems == ()
    [problem] = read_text(good + shared.format("group")).problems
    assert "must not be person" in problem.message


def test_admit_by_takes_ids_and_full_names(read_text: Reader, good: str) -> None:
    found = read_text(
        good
        + 'admit_by = ["door", "extensions.gate"]\n[extensions.door]\nplugin = "plain"\n[extensions.gate]\nplugin = "plain"\n'
    )
    assert found.manifest is not None
    assert found.manifest.access.admit_by == ("extensions.door", "extensions.gate")


def test_a_class_level_rule_is_reported_at_its_table(read_text: Reader, good: str) -> None:
    found = read_text(good + "[runtimes.agent]\n")
    assert [str(each) for each in found.problems] == [
        "dragoman.toml:9: runtimes.agent: instructions are missing"
    ]
