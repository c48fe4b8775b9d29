"""`dragoman pair` and `dragoman people`: what an operator does about accounts, without a chat."""

import anyio

from dragoman import Address
from dragoman.roles import Role
from dragoman.states import DeliveryState
from dragoman.store import operations as ops
from dragoman.store.accounts import digest
from dragoman.store.guest import write


def made(deployment, code="AAAABBBBCCCC", identity="console:9"):
    """Let an account be shown a code now."""
    import time

    notice = ops.Delivery(
        id=f"code_{identity}",
        address=Address("console", "9"),
        text=code,
        state=DeliveryState.PENDING,
        ready_at=time.time(),
    )
    wish = ops.MakeCode(
        purpose="pair",
        identity=identity,
        label="\x1b[31mBoss",
        selector=code[:6],
        salt="salt",
        hash=digest("salt", code[6:]),
        notice=notice,
        now=time.time(),
    )
    assert anyio.run(write, deployment.store, wish)


def roles(deployment):
    return dict(deployment.sql("SELECT identity, role FROM identities"))


def test_a_code_lets_in_and_a_revocation_out(deployment):
    made(deployment)
    [listed] = deployment.ask("pair", "list")["codes"]
    assert (listed["account"], listed["asked"]) == ("console:9", 1)
    assert not {"hash", "salt", "selector"} & set(listed)
    assert "\x1b" not in deployment.run("pair", "list")[1]
    done = deployment.run("pair", "approve", "aaaa-bbbb-cccc", "--role", "operator")
    assert done == (0, "console:9 is let in as operator\n", "")
    assert roles(deployment) == {"console:9": Role.OPERATOR.value}
    [by] = deployment.sql("SELECT changed_by FROM identities")
    assert by[0].startswith("operator:")
    assert deployment.run("pair", "revoke", "console:9")[:2] == (
        0,
        "console:9 is let in no longer\n",
    )
    assert deployment.run("pair", "revoke", "console:9")[0] == 1
    assert roles(deployment) == {"console:9": ""}


def test_fc_pai_01_the_operator_at_the_terminal_is_locked_as_well(deployment):
    """FC-PAI-01: five wrong codes, then the right one."""
    made(deployment)
    for _ in range(5):
        code, _, err = deployment.run("pair", "approve", "AAAA-BBBB-DDDD")
        assert code == 1
    assert "too many" in err
    assert deployment.run("pair", "approve", "AAAA-BBBB-CCCC") == (1, "", err)
    assert roles(deployment) == {}


def test_accounts_are_let_in_linked_and_taken_apart(deployment):
    assert deployment.run("people", "grant", "console:7", "user")[0] == 0
    assert deployment.run("people", "grant", "console:7", "user")[0] == 1
    assert deployment.run("people", "link", "console:7", "console:8")[0] == 0
    people = deployment.ask("people", "show", "console:8")["people"]
    assert [(one["account"], one["person"], one["role"]) for one in people] == [
        ("console:7", "console:7", "user"),
        ("console:8", "console:7", ""),
    ]
    assert deployment.run("people", "unlink", "console:8")[0] == 0
    assert deployment.run("people", "unlink", "console:8")[0] == 1
    assert len(deployment.ask("people", "show", "console:7")["people"]) == 1
    assert len(deployment.ask("people", "list")["people"]) == 2


def test_what_names_no_account_is_not_written(deployment):
    for words in (
        ("grant", "@ann", "user"),
        ("grant", "other:7", "user"),
        ("link", "console:7", "x"),
    ):
        code, _, err = deployment.run("people", *words)
        assert code == 2
        assert err
    assert roles(deployment) == {}
    assert deployment.run("people", "show", "console:7")[0] == 1
