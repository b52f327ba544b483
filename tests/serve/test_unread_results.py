"""`UnreadResults`: how many bytes of large results are on their way, by caller."""

from afoot.serve.unread_results import CALLERS_AT_ONCE, MAX_HELD_BYTES, UnreadResults


def test_a_caller_has_so_many_bytes_and_others_have_theirs() -> None:
    """H8: what one leaves unread is no matter of another."""
    unread = UnreadResults(lambda: 100)
    assert unread.take("a", 60) and not unread.take("a", 60)
    assert unread.take("b", 60)
    unread.free("a", 60)
    assert unread.take("a", 60)


def test_one_result_alone_is_always_sent() -> None:
    """H8: a bound below the largest result stops nobody."""
    assert UnreadResults(lambda: 100).take("a", 1000)


def test_all_callers_together_have_a_bound() -> None:
    """H8: nobody gets more by having many names."""
    unread = UnreadResults(lambda: 100)
    taken = [unread.take(f"caller {n}", 80) for n in range(20)]
    assert taken.count(True) == CALLERS_AT_ONCE * 100 // 80


def test_whoever_waits_is_woken_when_a_result_was_read() -> None:
    """H8: and no more once it has left."""
    woken: list[str] = []
    unread = UnreadResults(lambda: 100)

    def wake() -> None:
        woken.append("woken")

    unread.take("a", 60)
    unread.await_room(wake)
    unread.free("a", 60)
    unread.leave(wake)
    unread.take("a", 60)
    unread.free("a", 60)
    assert woken == ["woken"]


def test_a_refusal_says_how_much_and_what_to_do() -> None:
    """H8, E1: the caller can do something about it."""
    unread = UnreadResults(lambda: 100)
    unread.take("a", 60)
    fault = unread.refusal("a")
    assert fault.status == 429
    assert "60 bytes of results wait to be read by a (max_unread_bytes)" in fault.message


def test_results_that_wait_in_memory_have_a_bound_of_their_own() -> None:
    """H8: the history does not have them, and memory may not have all of them."""
    unread = UnreadResults(lambda: 100)
    assert unread.hold(MAX_HELD_BYTES) and not unread.hold(1)
    unread.hold(-MAX_HELD_BYTES)
    assert unread.hold(1)
