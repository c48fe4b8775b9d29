"""What plugin authors test with: suites, fakes and a virtual clock.

`dragoman.testing.store` and other suites need pytest: install ``dragoman[testing]``.
"""

import sys

if "pytest" in sys.modules:
    # Before the suites are imported: a failing assert in them then shows its values.
    sys.modules["pytest"].register_assert_rewrite(
        "dragoman.testing.platform_failing",
        "dragoman.testing.platform_flags",
        "dragoman.testing.platform_hearing",
        "dragoman.testing.platform_living",
        "dragoman.testing.platform_speaking",
        "dragoman.testing.platform_stage",
        "dragoman.testing.platform_suite",
        "dragoman.testing.runtime_acting",
        "dragoman.testing.runtime_answering",
        "dragoman.testing.runtime_ending",
        "dragoman.testing.runtime_failing",
        "dragoman.testing.runtime_flags",
        "dragoman.testing.runtime_grammar",
        "dragoman.testing.runtime_machine",
        "dragoman.testing.runtime_pausing",
        "dragoman.testing.runtime_remembering",
        "dragoman.testing.runtime_stage",
        "dragoman.testing.runtime_steering",
        "dragoman.testing.runtime_suite",
        "dragoman.testing.runtime_turnhost",
        "dragoman.testing.store",
        "dragoman.testing.store_again",
        "dragoman.testing.store_machine",
        "dragoman.testing.store_model",
        "dragoman.testing.store_model_events",
        "dragoman.testing.store_model_rows",
        "dragoman.testing.store_model_turns",
        "dragoman.testing.store_queries",
        "dragoman.testing.store_rows",
        "dragoman.testing.store_waiting",
        "dragoman.testing.suite_host",
    )

from dragoman.testing.clock import VirtualClock as VirtualClock
from dragoman.testing.clock import settle as settle
from dragoman.testing.platform import StubPlatform as StubPlatform
from dragoman.testing.plugin import StubPlugin as StubPlugin
from dragoman.testing.runtime import ScriptedRuntime as ScriptedRuntime
