"""A second process that waits for the store of the first."""

import signal
import time

from dragoman.process import exits


def test_a_process_that_stands_by_takes_over_when_the_first_is_killed(deployment):
    """B9, FC-STO-04: at once, as it looks five times a second, and it answers."""
    deployment.write()
    first = deployment.start()
    first.until_works()
    second = deployment.start("--standby")
    second.until(lambda: "standing by" in second.errors)
    second.tell("are you there")
    first.signal(signal.SIGKILL)
    first.process.wait(60)
    killed = time.monotonic()
    lock = deployment.folder / ".dragoman" / "dragoman.db.lock"
    second.until(lambda: lock.read_text() == str(second.process.pid))
    assert time.monotonic() - killed < 10
    second.until_said("done: are you there")
    assert second.errors.count("standing by") == 1
    assert f"in use by process {first.process.pid}" in second.errors
    assert second.end(signal.SIGTERM)[0] == 0
    assert second.intact()


def test_a_process_that_stands_by_ends_in_order_on_a_signal(deployment):
    deployment.write()
    first = deployment.start()
    first.until_works()
    second = deployment.start("--standby")
    second.until(lambda: "standing by" in second.errors)
    code, seconds = second.end(signal.SIGTERM)
    assert code == exits.ORDERED
    assert seconds < 10
    assert len(second.errors.splitlines()) == 1
    first.tell("still here")
    first.until_said("done: still here")


def test_a_process_that_stands_by_starts_at_once_where_nobody_is(deployment):
    deployment.write()
    life = deployment.start("--standby")
    life.until_works()
    assert life.errors == ""
