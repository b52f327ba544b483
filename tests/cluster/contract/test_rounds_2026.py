"""The tests of questions on 2026-07-28, over a cluster."""

from tests.e2e.transports.test_rounds_2026 import *  # noqa: F403
