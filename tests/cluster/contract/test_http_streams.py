"""The tests of streams over HTTP, over a cluster."""

from tests.e2e.transports.test_http_streams import *  # noqa: F403

NOT_HERE = (
    # Each gateway knows the tokens of its own requests; progress goes to the stream of its request anyway.
    "test_a_token_that_is_in_use_on_a_session_is_served_without_progress",
    # These look at the sockets of one gateway, whose settings are their own.
    "test_a_reader_that_takes_no_byte_is_taken_for_gone",
    "test_a_silent_call_becomes_a_stream_in_time_and_is_kept_alive",
    "test_a_reader_that_reads_nothing_slows_nobody",
    "test_a_slow_reader_does_not_disturb_another_call",
)
for _name in NOT_HERE:
    del globals()[_name]
