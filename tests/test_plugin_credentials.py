"""Responses that hold a password or a token: what is read, and that nothing of them is shown."""

from __future__ import annotations

from functools import partial

import pytest

from router.plugin import Password, Token, read_plain, read_token
from router.plugin_credentials import LONGEST_RESPONSE


def test_a_password() -> None:
    assert read_plain(b"\0ada\0s3cr\xc3\xa9t") == Password("ada", "s3crét")
    assert read_plain(b"bob\0ada\0x") == Password("ada", "x", "bob")


@pytest.mark.parametrize(
    ("mechanism", "response", "user", "token"),
    [
        ("XOAUTH2", b"user=ada\x01auth=Bearer s3cret==\x01\x01", "ada", "s3cret=="),
        ("XOAUTH2", b"user=a@b\x01auth=bearer a.b-c_d~e+f/g\x01\x01", "a@b", "a.b-c_d~e+f/g"),
        ("OAUTHBEARER", b"n,,\x01auth=Bearer s3cret\x01\x01", "", "s3cret"),
        ("OAUTHBEARER", b"y,a=ada,\x01auth=BEARER s3cret\x01\x01", "ada", "s3cret"),
        (
            "OAUTHBEARER",
            b"n,a=a=2Cb=3Dc,\x01host=h\x01port=5671\x01auth=Bearer s3cret\x01\x01",
            "a,b=c",
            "s3cret",
        ),
    ],
)
def test_a_token(mechanism: str, response: bytes, user: str, token: str) -> None:
    assert read_token(mechanism, response) == Token(user, token)


@pytest.mark.parametrize(
    ("mechanism", "response"),
    [
        ("PLAIN", b""),
        ("PLAIN", b"s3cret"),
        ("PLAIN", b"ada\0s3cret"),
        ("PLAIN", b"\0ada\0"),
        ("PLAIN", b"\0\0s3cret"),
        ("PLAIN", b"\0ada\0s3cret\0"),
        ("PLAIN", b"\0ada\0s3cret\xff"),
        ("PLAIN", b"\0ada\0s3cret" + b"x" * LONGEST_RESPONSE),
        ("XOAUTH2", b""),
        ("XOAUTH2", b"user=\x01auth=Bearer s3cret\x01\x01"),
        ("XOAUTH2", b"user=ada\x01auth=Bearer s3cret\x01"),
        ("XOAUTH2", b"user=ada\x01auth=Bearer s3cret\x01\x01\x01"),
        ("XOAUTH2", b"user=ada\x01auth=Basic s3cret\x01\x01"),
        ("XOAUTH2", b"user=ada\x01auth=Bearer \x01\x01"),
        ("XOAUTH2", b"user=ada\x01auth=Bearer s3 cret\x01\x01"),
        ("XOAUTH2", b"user=ada\x01s3cret\x01\x01"),
        ("XOAUTH2", b"\xffuser=ada\x01auth=Bearer s3cret\x01\x01"),
        ("XOAUTH2", b"user=ada\x01auth=Bearer s3cret" + b"x" * LONGEST_RESPONSE + b"\x01\x01"),
        ("OAUTHBEARER", b""),
        ("OAUTHBEARER", b"\x01"),
        ("OAUTHBEARER", b"n,,\x01\x01"),
        ("OAUTHBEARER", b"n,\x01auth=Bearer s3cret\x01\x01"),
        ("OAUTHBEARER", b"n,,x\x01auth=Bearer s3cret\x01\x01"),
        ("OAUTHBEARER", b"p=tls-unique,,\x01auth=Bearer s3cret\x01\x01"),
        ("OAUTHBEARER", b"n,ada,\x01auth=Bearer s3cret\x01\x01"),
        ("OAUTHBEARER", b"n,a=,\x01auth=Bearer s3cret\x01\x01"),
        ("OAUTHBEARER", b"n,a=a=2,\x01auth=Bearer s3cret\x01\x01"),
        ("OAUTHBEARER", b"n,,\x01auth=Bearer s3cret\x01"),
        ("OAUTHBEARER", b"n,,\x01auth=Bearer s3cret\x01auth=Bearer s3cret\x01\x01"),
        ("ANONYMOUS", b"s3cret"),
    ],
)
def test_what_is_of_another_form_is_refused(mechanism: str, response: bytes) -> None:
    read = read_plain if mechanism == "PLAIN" else partial(read_token, mechanism)
    with pytest.raises(ValueError) as refused:
        read(response)
    assert "s3cret" not in str(refused.value)
    assert refused.value.__cause__ is None


def test_nothing_secret_is_shown() -> None:
    assert "s3cret" not in repr(Password("ada", "s3cret"))
    assert "s3cret" not in repr(Token("ada", "s3cret"))
