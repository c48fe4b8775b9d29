"""What plugin authors test with: suites, fakes and a virtual clock.

`dragoman.testing.store` and other suites need pytest: install ``dragoman[testing]``.
"""

from dragoman.testing.clock import VirtualClock as VirtualClock
from dragoman.testing.clock import settle as settle
from dragoman.testing.platform import StubPlatform as StubPlatform
from dragoman.testing.plugin import StubPlugin as StubPlugin
from dragoman.testing.runtime import ScriptedRuntime as ScriptedRuntime
