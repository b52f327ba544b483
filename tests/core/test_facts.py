"""Facts as JSON: what is written is what is read."""

import pytest
from hypothesis import given
from msgspec import Raw, ValidationError, json

from afoot.core.facts import NOTHING, Fact, Limits, Logged, Opened, Reported, Started
from tests.core import random_facts
from tests.core.calls_by_state import KINDS

decoder: json.Decoder[Fact] = json.Decoder(Fact)


@given(random_facts.facts)
def test_a_fact_comes_back_from_json_as_it_was(fact: Fact) -> None:
    """H1: encode, decode: the same fact, of the same kind."""
    again = decoder.decode(json.encode(fact))
    assert type(again) is type(fact)
    assert again == fact
    assert json.encode(again) == json.encode(fact)


def test_every_kind_has_a_tag_of_its_own() -> None:
    """H1: the tag in the history says which fact it is; renaming one would make old histories unreadable."""
    assert {kind.__name__: kind.__struct_config__.tag for kind in KINDS} == {
        "Opened": "opened",
        "Amended": "amended",
        "Admitted": "admitted",
        "Started": "started",
        "Interrupted": "interrupted",
        "Redefined": "redefined",
        "Reported": "reported",
        "Logged": "logged",
        "HandedOver": "handed_over",
        "Hindered": "hindered",
        "Asked": "asked",
        "Answered": "answered",
        "CancelRequested": "cancel_requested",
        "Finished": "finished",
        "Released": "released",
    }


def test_what_is_not_said_is_not_written() -> None:
    """H1: NOTHING and the defaults take no space, and come back as themselves."""
    assert json.encode(Reported(1.0)) == b'{"type":"reported","at":1.0}'
    again = decoder.decode(b'{"type":"reported","at":1.0}')
    assert isinstance(again, Reported)
    assert again.data is NOTHING
    assert not again.partial


def test_null_is_a_value_and_not_nothing() -> None:
    """H4: a checkpoint of null is a checkpoint."""
    again = decoder.decode(json.encode(Reported(1.0, checkpoint=Raw(b"null"))))
    assert isinstance(again, Reported)
    assert again.checkpoint == Raw(b"null")
    assert again.checkpoint


def test_arguments_are_kept_to_the_byte() -> None:
    """H1: spaces, order and digits stay as the caller sent them."""
    sent = b'{ "b": 1.50, "a":\t"\\u00e9", "b": 2 }'
    again = decoder.decode(json.encode(Opened(1.0, "t", "s", "c", Raw(sent))))
    assert isinstance(again, Opened)
    assert bytes(again.arguments) == sent


def test_the_defaults_are_the_documented_ones() -> None:
    """C1: 30 s idle, 300 s in all, ten minutes for an answer, a minute in the queue and to start."""
    assert Limits() == Limits(
        idle_s=30.0, ceiling_s=300.0, answer_s=600.0, queue_s=60.0, grace_s=5.0, start_s=60.0, patient=False
    )
    assert Started(1.0).attempt == 1 and not Started(1.0).unsent


@pytest.mark.parametrize(
    "text", [b'{"type":"unheard","at":1}', b'{"at":1}', b'{"type":"logged","at":"x","text":""}']
)
def test_what_is_no_fact_is_refused(text: bytes) -> None:
    """H1: an unknown kind, none, or a wrong field is an error and never a guess."""
    with pytest.raises(ValidationError):
        decoder.decode(text)


def test_a_fact_of_a_later_afoot_with_more_fields_is_read() -> None:
    """H1: a field that this program does not know is left aside."""
    assert decoder.decode(b'{"type":"logged","at":1,"text":"x","newer":[1]}') == Logged(1.0, "x")
