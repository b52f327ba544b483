"""Facts of every kind by chance, for property tests."""

from hypothesis import strategies as st
from msgspec import Raw

from afoot.core.facts import (
    NOTHING,
    Admitted,
    Amended,
    Answer,
    Answered,
    Asked,
    CancelRequested,
    Fact,
    Failure,
    Finished,
    HandedOver,
    Hindered,
    Interrupted,
    Limits,
    Logged,
    Opened,
    Question,
    Reading,
    Redefined,
    Released,
    Reported,
    Result,
    Started,
)

names = st.sampled_from(["a", "b", "c"])
texts = st.text(st.characters(codec="utf-8"), max_size=8)
numbers = st.none() | st.floats(allow_nan=False, allow_infinity=False)
values = st.sampled_from([b"null", b"1", b'"x"', b'{"a": [1, 2]}', b'{"b":{}}']).map(Raw)
maybe = st.just(NOTHING) | values
instants = st.floats(0.0, 2e9)
attempts = st.integers(1, 3)

limits = st.builds(
    Limits,
    st.none() | st.floats(0.1, 100.0),
    st.floats(0.1, 1000.0),
    st.floats(0.1, 1000.0),
    st.floats(0.1, 100.0),
    start_s=st.floats(0.1, 100.0),
    patient=st.booleans(),
)
readings = st.builds(
    Reading, instants, numbers, numbers, st.none() | texts, st.sampled_from(["tool", "engine"])
)
questions = st.builds(
    Question,
    names,
    texts,
    st.sampled_from(["form", "url", "sample", "roots", "approval", "below"]),
    texts,
    maybe,
    st.sampled_from(["", "caller", "operator"]),
    st.sampled_from(["", "c2.1"]),
)
answers = st.builds(Answer, st.sampled_from(["accept", "decline", "cancel"]), maybe, texts)
results = st.builds(Result, values, maybe, st.booleans())
failures = st.builds(
    Failure,
    texts,
    retryable=st.booleans(),
    retry_after_s=numbers,
    clock=st.none() | st.sampled_from(["idle", "ceiling"]),
    last=st.none() | readings,
)
opened = st.builds(
    Opened,
    instants,
    texts,
    texts,
    texts,
    values,
    limits,
    read_only=st.booleans(),
    idempotent=st.booleans(),
    parent=st.none() | texts,
    digest=texts,
    approval=st.sampled_from(["auto", "allowlist", "ask"]),
    trusted=st.booleans(),
)
later: st.SearchStrategy[Fact] = st.one_of(
    st.builds(Amended, instants, values, texts),
    st.builds(Admitted, instants, texts),
    st.builds(Started, instants, attempts, texts, st.booleans()),
    st.builds(
        Reported,
        instants,
        attempts,
        numbers,
        numbers,
        st.none() | texts,
        maybe,
        maybe,
        maybe,
        late=st.booleans(),
    ),
    st.builds(Interrupted, instants, st.floats(0.0, 1000.0)),
    st.builds(
        Redefined,
        instants,
        texts,
        st.integers(0, 3),
        st.sampled_from(["auto", "allowlist", "ask"]),
        st.booleans(),
        st.booleans(),
        st.booleans(),
    ),
    st.builds(HandedOver, instants, st.sampled_from(["task", "handle", "round"])),
    st.builds(Hindered, instants, texts, texts),
    st.builds(Logged, instants, texts, texts, texts),
    st.builds(Asked, instants, questions),
    st.builds(Answered, instants, names, answers),
    st.builds(CancelRequested, instants, texts, texts),
    st.builds(
        Finished,
        instants,
        st.sampled_from(["ok", "failed", "lost"]),
        st.none() | results,
        st.none() | failures,
    ),
    st.builds(Released, instants, st.sampled_from(["stopped", "grace"])),
)
facts: st.SearchStrategy[Fact] = opened | later
