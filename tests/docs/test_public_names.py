"""What plugins may rely on: the public names, and that they are typed for their authors."""

import subprocess
import sys

import pytest

import dragoman
import dragoman.runtimes
import dragoman.testing


def public(module):
    """The names that a module offers, without its submodules."""
    return sorted(
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and type(value) is not type(dragoman)
    )


def test_the_public_names_are_these():
    """E4: removing or renaming one breaks plugins; adding one is a decision."""
    assert public(dragoman) == NAMES


def test_the_names_for_tests_are_these():
    """E4."""
    assert public(dragoman.testing) == TESTING


def test_the_names_for_runtimes_are_these():
    """E4."""
    assert public(dragoman.runtimes) == RUNTIMES


@pytest.mark.parametrize("name", ["plugin_author.py"])
def test_a_plugin_author_can_type_strictly(root, tmp_path, name):
    """E4: one use of each protocol and hook; what is wrong in it is an error of types."""
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", root / "tests/typing" / name],
        cwd=tmp_path,
        env={"MYPYPATH": str(root / "core" / "src"), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout


NAMES = """
AccountMismatch Address Answers ApprovalRequested ApprovalState Attachment Button Cancelled
Capabilities ChatCommand CliCommand Clock CommandCall Component ComponentRecords Conflict ConversationKey
ConversationView Decision Deletes Deliver Dialect Drafts DragomanError Drop EncodedInput Expired
Failed FailureKind FetchedFile Fetches FileLimits FileUnavailable Finding Finished Forbidden
Gateway Gone Handoff Host Inbound InputConsumed Inspection Inspects ItemLine ItemProblem Kind
LengthUnit LongToolHint LookUp ManifestError Memory MemoryStore ModelCall Mount Moved
NetworkPolicy NotSent Note Notice Observation Outbound OutboundFile Paused Place PlainDialect
Platform PlatformError PlatformHealth PlatformStatus PluginError Probes Quote Rate RateLimited
Reactions Receipt Records Refused Role RunEnd RunEvent Runtime RuntimeCapabilities RuntimeFailed
SchemaTooNew Scope ScopeRule Secret Sender Sink StaleLease StoreError StoreHeld StoreUnavailable
SystemClock TextBlock TextDelta Thinking ToolBegins ToolCall ToolDecision ToolFinished
ToolProgress ToolRecorded ToolStarted ToolUnknown Transport TurnEnded TurnHost TurnInfo TurnInput
TurnRequest TurnSink TurnStarted Unauthorized Unknown Usage Verdict hookimpl
""".split()

RUNTIMES = """
Attach Feed Fetch McpTable Read ReferenceProblem Suggest TurnContext UNKNOWN Values chain described
has_names is_discreet is_reference is_server is_time_zone place read_file recall refusal remember
resolve told well_formed
""".split()

TESTING = "ScriptedRuntime StubPlatform StubPlugin VirtualClock settle".split()
