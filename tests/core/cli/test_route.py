"""`dragoman route explain`: which profile answers somewhere, and why, beside any gateway or none."""

from datetime import UTC, datetime

import anyio
import pytest

from dragoman import Address, Inbound, Sender
from dragoman.cli.main import main
from dragoman.keys import ConversationKey
from dragoman.store import operations as ops
from dragoman.store.sqlite import open_sqlite

MANIFEST = """
manifest = 1

[platforms.bot]
plugin = "telegram"
token = { env = "BOT_TOKEN" }

[runtimes.echo]

[profiles.default]
runtime = "echo"
[profiles.fast]
runtime = "echo"
[profiles.ops]
runtime = "echo"
allow = ["operators"]
trigger = "all"

[[routes]]
profile = "default"
profiles = ["fast"]

[[routes]]
channel = "-1001234"
profile = "ops"

[[routes]]
platform = "bot"
channel = "-1001234"
thread = 5
profile = "fast"

[access]
owners = ["telegram:7"]
users = ["telegram:8"]
roles = ["discord:1:2"]
"""


@pytest.fixture
def explain(tmp_path, capsys, monkeypatch):
    """Return what runs the command: its exit code, and its lines by their first word."""
    monkeypatch.setenv("BOT_TOKEN", "123456:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")
    (tmp_path / "dragoman.toml").write_text(MANIFEST)

    def run(*words):
        code = main(["route", "explain", *words, "-m", str(tmp_path / "dragoman.toml")])
        shown = capsys.readouterr()
        lines = (shown.out or shown.err).splitlines()
        return code, {line[:9].strip(): line[10:] for line in lines} if shown.out else lines

    return run


@pytest.fixture
def put(tmp_path):
    """Return what writes into the store, as a gateway would."""

    def write(*operations):
        async def apply():
            path = tmp_path / ".dragoman" / "dragoman.db"
            path.parent.mkdir(exist_ok=True)
            async with open_sqlite(path) as store:
                return [await store.apply(each) for each in operations]

        return anyio.run(apply)

    return write


def heard(channel, user, **more):
    address = Address("bot", channel, **more)
    return ops.Receive(
        inbound=Inbound("n1", address, Sender(user), "x", datetime.now(UTC)), now=1.0
    )


def test_the_route_is_named_with_its_line_and_what_it_was_better_than(explain):
    """A7: without any store."""
    code, said = explain("bot:-1001234", "--user", "7")
    assert code == 0
    assert said == {
        "profile": "ops",
        "route": "routes[1] in line 23 names channel",
        "beside it": "routes[0] in line 19, profile default: names no channel",
        "offered": "ops",
        "person": "telegram:7: let in by owners, as owner",
        "place": "bot:-:-1001234:-:-, a group, where everything is answered",
        "session": "none yet; one for each thread",
    }
    code, said = explain("bot:-1001234:5", "--user", "7")
    assert (said["profile"], said["route"]) == (
        "fast",
        "routes[2] in line 27 names thread, channel, platform",
    )


def test_who_is_not_let_in_is_told_by_which_rule(explain):
    code, said = explain("bot:-1001234", "--user", "8")
    assert code == 1
    assert said["person"].startswith("telegram:8: not let in: not among those whom profile ops")
    code, said = explain("bot:9", "--user", "9")
    assert code == 1
    assert said["person"] == (
        "telegram:9: not let in: not on any list; what roles of the platform allow is not known here"
    )
    code, said = explain("bot:9")
    assert (code, said["person"]) == (0, "nobody was named: say --user ID")
    assert said["offered"] == "default, fast"


def test_what_the_store_knows_counts(explain, put):
    """Places, moves, choices, pairing and sessions; A1: also under the id that a chat had before."""
    [received, *_] = put(
        heard("8", "8"),
        ops.Move(platform="bot", workspace="", old="-77", new="-1001234"),
        ops.PutValue(component="choices", name='["bot", "", "8", "", "profile"]', value="fast"),
    )
    [accepted] = put(
        ops.Accept(
            event_id=received.event_id,
            conversation=ConversationKey("bot", "", "8", "", ""),
            profile="fast",
            runtime="echo",
            rule="users",
            namespace="",
            item="",
            now=2.0,
        )
    )
    code, said = explain("bot:8")
    assert code == 0
    assert said["chosen"] == "with /profile, instead of default"
    assert (said["profile"], said["person"]) == ("fast", "telegram:8: let in by users, as user")
    assert said["session"] == f"{accepted.session_id}; one for each thread"
    code, said = explain("bot:-77", "--user", "7")
    assert (said["profile"], said["place"].split(",")[0]) == ("ops", "bot:-:-1001234:-:-")


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("tele:8", "no [platforms.tele] in"),
        ("bot", "'bot' names no place: expected PLATFORM:CHANNEL"),
        ("bot:8:", "names no place"),
        (":8", "names no place"),
        ("bot:@group", "names grant nothing"),
        ("bot:*", "is not an id"),
    ],
)
def test_what_names_no_place_is_refused(explain, place, told):
    code, said = explain(place)
    assert code == 2
    assert told in said[0]


def test_a_store_that_only_a_gateway_reads_is_done_without(explain, tmp_path):
    (tmp_path / "dragoman.toml").write_text('store = ":memory:"\n' + MANIFEST)
    assert explain("bot:8", "--user", "8")[0] == 0
