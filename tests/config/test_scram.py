"""Keys for SCRAM in users files."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from router.config.scram import MECHANISMS, decoy_scram, make_scram, parse_scram


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_keys_are_read_as_they_are_written(mechanism: str) -> None:
    keys = make_scram(mechanism, "s3cret")
    assert parse_scram(keys.text()) == keys
    assert keys.matches(b"s3cret")
    assert not keys.matches(b"s3crets")


def test_the_keys_of_another_program() -> None:
    """Those of PostgreSQL for the user and password of RFC 7677, section 3."""
    text = (
        "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY="
        ":wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
    )
    assert parse_scram(text).matches(b"pencil")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("SCRAM-SHA-256", "has no keys of the form"),
        ("SCRAM-SHA-9$4096:a$b:c", "has no keys of the form"),
        ("SCRAM-SHA-1$4095:a$b:c", "not from 4096 to 1000000"),
        ("SCRAM-SHA-1$1000001:a$b:c", "not from 4096 to 1000000"),
        ("SCRAM-SHA-1$4096:?$b:c", "not base64"),
        ("SCRAM-SHA-1$4096:QUJDREVGR0g=$QUJD:QUJD", "a key that is not of 20 bytes"),
        ("SCRAM-SHA-1$4096:QUJD$QUJD:QUJD", "a salt of less than 8 bytes"),
    ],
)
def test_what_are_no_keys(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse_scram(text)


@given(st.text())
def test_any_text_are_keys_or_a_value_error(text: str) -> None:
    for candidate in (text, f"SCRAM-SHA-1$4096:{text}"):
        try:
            parse_scram(candidate)
        except ValueError:
            pass


def test_keys_do_not_show() -> None:
    keys = make_scram("SCRAM-SHA-1", "s3cret")
    assert repr(keys) == "ScramKeys(mechanism='SCRAM-SHA-1', iterations=15000)"


def test_nobody_has_the_same_salt_each_time_and_no_password() -> None:
    one, again = (decoy_scram("SCRAM-SHA-512", "bob", 4096, 16) for _ in range(2))
    assert one.salt == again.salt
    assert len(one.stored_key) == 64
    assert not one.matches(b"")
