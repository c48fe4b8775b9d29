"""The server as a process: two of them live side by side, and nothing of one is left behind."""

from __future__ import annotations

import socket

import pytest

from peers import install_yepcord
from peers.yepcord import Yepcord


@pytest.mark.proof
def test_two_servers_do_not_meet(yepcord, room, tmp_path):
    with Yepcord(tmp_path) as other:
        other.anna.say(other.channel_id, "in the other house")
        yepcord.anna.say(room, "in this house")
        assert other.ben.texts(other.channel_id) == ["in the other house"]
        assert yepcord.ben.texts(room) == ["in this house"]
        ports = [other.port, int(other.shim.url.rpartition(":")[2])]
    for port in ports:
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", port)) != 0


@pytest.mark.parametrize(("ci", "code"), [("", 0), ("true", 1)])
def test_a_python_that_cannot_build_it_is_said_by_name(monkeypatch, capsys, ci, code):
    monkeypatch.setattr(install_yepcord, "interpreter", lambda: None)
    monkeypatch.setenv("CI", ci)
    assert install_yepcord.main() == code
    assert "yepcord is left out: it needs Python 3.11 or 3.12" in capsys.readouterr().out
