"""What plugin authors test with: suites, fakes and a virtual clock.

Needs the extra ``dragoman[testing]``.
"""

from dragoman.testing.clock import VirtualClock as VirtualClock
