"""Shared access signatures: what is signed, and every way to get around it."""

from __future__ import annotations

import pytest

from router.core.addresses.claims import Grant, TokenRefused
from router.net.claims.sas import SasKey, SasKeys

from support.tokens import KEY, NOW, sas

KEYS = SasKeys(
    [
        SasKey("root", (KEY.encode(), b"second"), 7),
        SasKey("sensors", (b"other",), 1),
    ]
)


def refused(token: str, leeway_s: float = 0.0) -> TokenRefused:
    """Return the refusal of a token."""
    with pytest.raises(TokenRefused) as caught:
        KEYS.verify(token, NOW, leeway_s)
    return caught.value


def test_a_token_gives_its_keys_rights_at_its_path() -> None:
    verified = KEYS.verify(sas("sb://host:5671/orders/"), NOW, 0.0)
    assert verified.grants == (Grant("orders", 7, "host:5671"),)
    assert verified.lifetime_s == 60.0
    assert verified.key == "root"
    token = sas("https://host/", key="other", name="sensors")
    assert KEYS.verify(token, NOW, 0.0).grants == (Grant("", 1, "host"),)


def test_either_key_is_valid_while_they_are_exchanged() -> None:
    assert KEYS.verify(sas("a", key="second"), NOW, 0.0).key == "root"
    assert "not signed" in refused(sas("a", key="third")).description


@pytest.mark.parametrize(
    "token",
    [
        sas("orders", key="wrong"),
        sas("orders", name="nobody"),
        sas("orders", name="sensors"),
        sas("orders").replace("sr=orders", "sr=secret"),
        sas("orders").replace("se=1800000060", "se=1900000060"),
        sas("orders").replace("sr=orders", "sr=%6frders"),
        sas("orders").replace("skn=root", "skn=sensors"),
    ],
    ids=["key", "name", "other key", "path", "expiry", "encoding", "key name"],
)
def test_what_is_not_signed_is_refused_in_the_same_words(token: str) -> None:
    error = refused(token)
    assert error.status == 401
    assert error.description == ("the SAS token is not signed with a key that is accepted here")


def test_a_refusal_keeps_nothing_of_an_earlier_one() -> None:
    """An exception that is raised again would keep the frames of each time, and their tokens."""
    assert refused(sas("orders", key="wrong")) is not refused(sas("orders", key="wrong"))


@pytest.mark.parametrize(
    "token",
    [
        sas("a") + "&sr=b",
        sas("a") + "&skn=sensors",
        sas("a") + "&se=1900000000",
        sas("a") + "&x=1&x=2",
        sas("a").replace("&se=", "&ex="),
        sas("a").replace("sig=", "sig=&no="),
        "SharedAccessSignature ",
        "SharedAccessSignature sr=a",
        sas("a").replace("sr=a", "sr=%zz"),
        sas("a").replace("sr=a", "sr=%ff"),
    ],
    ids=["sr", "skn", "se", "unknown", "no se", "no sig", "empty", "sr only", "escape", "utf-8"],
)
def test_fields_come_once_and_whole(token: str) -> None:
    assert refused(token).status in (400, 401)


@pytest.mark.parametrize(
    "expiry", ["-1", "1e12", "1800000060.5", "+1800000060", " 1800000060", "9" * 13, "\u0661", ""]
)
def test_an_expiry_is_a_plain_number(expiry: str) -> None:
    refused(sas("a", expiry=expiry))


def test_expiry_has_leeway() -> None:
    late = sas("a", expiry=int(NOW) - 30)
    assert "expired" in refused(late).description
    assert KEYS.verify(late, NOW, 60.0).lifetime_s == 30.0


def test_a_signature_is_base64() -> None:
    refused(sas("a").replace("sig=", "sig=!"))


def test_an_audience_is_an_address() -> None:
    assert refused(sas("a\nb")).status == 401
    assert refused(sas("a" * 3000)).status == 401


def test_no_text_shows_a_key_or_a_token() -> None:
    token = sas("orders", key="wrong")
    shown = f"{refused(token)} {SasKey('root', (b'k3y',), 7)!r} {KEYS!r}"
    assert KEY not in shown
    assert token not in shown
