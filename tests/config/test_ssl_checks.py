"""Profiles, and listeners and connectors that name them."""

from __future__ import annotations

import pytest

from router.config.load import parse_configuration
from router.config.mistakes import InvalidConfiguration

from support.configuring import problems_in

PROFILES = """
[[sslProfile]]
name = "own"
certFile = "/own.pem"
[[sslProfile]]
name = "both"
certFile = "/own.pem"
caCertFile = "/ca.pem"
[[sslProfile]]
name = "trust"
caCertFile = "/ca.pem"
"""


def mistakes(text: str) -> list[str]:
    """Return the mistakes in a file with some profiles, each without its place."""
    return problems_in(PROFILES + text)


@pytest.mark.parametrize(
    "text",
    [
        '[[listener]]\nsslProfile = "own"\nsniSslProfiles = ["both"]\nrequireSsl = false',
        '[[listener]]\nsslProfile = "both"\nclientCertificate = "optional"',
        '[[listener]]\nsslProfile = "both"\nsaslMechanisms = "EXTERNAL"\nauthenticatePeer = true',
        '[[listener]]\nhttp = true\nport = 1\nsslProfile = "both"\nclientCertificate = "required"',
        '[[connector]]\nsslProfile = "trust"\nverifyHostname = false\nsslUpgrade = true',
        '[[listener]]\nsslProfile = "own"\nsaslMechanisms = "EXTERNAL"\nclientCertificate = "none"',
        "[[listener]]\nrequireSsl = false",
        '[[listener]]\nsniSslProfiles = []\nclientCertificate = "none"\nrequireEncryption = false',
        "[[connector]]\nsslUpgrade = false",
    ],
)
def test_what_fits_together(text: str) -> None:
    assert mistakes(text) == []


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("[[sslProfile]]", "sslProfile[3].name: is missing; give the sslProfile a name"),
        (
            '[[sslProfile]]\nname = "own"',
            (
                'sslProfile[3].name: "own" is taken: sslProfile[0] has the same name; give another '
                "name"
            ),
        ),
        (
            '[[listener]]\nsslProfile = "none"',
            (
                "listener[0].sslProfile: names none, which does not exist; known here: own, "
                "both, trust"
            ),
        ),
        (
            '[[connector]]\nsslProfile = "none"',
            (
                "connector[0].sslProfile: names none, which does not exist; known here: own, "
                "both, trust"
            ),
        ),
        (
            '[[listener]]\nsslProfile = "trust"',
            (
                "listener[0].sslProfile: names trust, a profile without a certificate; give "
                "that profile a certFile, or name another one"
            ),
        ),
        (
            '[[listener]]\nsslProfile = "own"\nsniSslProfiles = "trust"',
            (
                "listener[0].sniSslProfiles: names trust, a profile without a certificate; give "
                "that profile a certFile, or name another one"
            ),
        ),
        (
            '[[listener]]\nsslProfile = "own"\nclientCertificate = "optional"',
            (
                "listener[0].sslProfile: names own, a profile without caCertFile, though peers are "
                "asked for certificates; give that profile the authorities that sign them, in "
                "caCertFile"
            ),
        ),
        (
            '[[listener]]\nsslProfile = "own"\nsniSslProfiles = ["both", "none"]',
            (
                "listener[0].sniSslProfiles: names none, which does not exist; known here: own, "
                "both, trust"
            ),
        ),
        (
            '[[listener]]\nsslProfile = "own"\nsaslMechanisms = "EXTERNAL ANONYMOUS"',
            (
                "listener[0].sslProfile: names own, a profile without caCertFile, though peers are "
                "asked for certificates; give that profile the authorities that sign them, in "
                "caCertFile"
            ),
        ),
        (
            '[[listener]]\nsniSslProfiles = ["own"]',
            (
                'listener[0].sniSslProfiles: ["own"] has no effect without TLS; give an '
                "sslProfile, or remove it"
            ),
        ),
        (
            "[[listener]]\nrequireEncryption = true",
            (
                "listener[0].requireEncryption: true has no effect without TLS; give an "
                "sslProfile, or remove it"
            ),
        ),
        (
            "[[listener]]\nrequireSsl = true",
            (
                "listener[0].requireSsl: true has no effect without TLS; give an sslProfile, or "
                "remove it"
            ),
        ),
        (
            '[[listener]]\nclientCertificate = "required"',
            (
                'listener[0].clientCertificate: "required" has no effect without TLS; give an '
                "sslProfile, or remove it"
            ),
        ),
        (
            '[[listener]]\nsaslMechanisms = ["EXTERNAL", "ANONYMOUS"]',
            (
                "listener[0].saslMechanisms: has EXTERNAL, but without TLS no peer has a "
                "certificate; give an sslProfile, or remove EXTERNAL"
            ),
        ),
        (
            "[[connector]]\nsslUpgrade = true",
            (
                "connector[0].sslUpgrade: true has no effect without TLS; give an sslProfile, or "
                "remove it"
            ),
        ),
    ],
)
def test_what_does_not(text: str, mistake: str) -> None:
    assert mistakes(text) == [mistake]


def test_without_any_profile_there_is_none_to_name() -> None:
    with pytest.raises(InvalidConfiguration, match="there is no sslProfile yet: add one"):
        parse_configuration('[[connector]]\nsslProfile = "p"', source="f")


def test_a_profile_that_is_no_good_is_said_alone() -> None:
    text = '[[listener]]\nsslProfile = ""\nrequireSsl = true\nsaslMechanisms = "EXTERNAL"'
    [mistake] = mistakes(text)
    assert mistake.startswith('listener[0].sslProfile: "" is not allowed')


def test_each_listener_is_told_of_its_own_mistakes() -> None:
    text = (
        '[[listener]]\nport = 1\nsslProfile = "both"\n'
        '[[listener]]\nport = 2\nsslProfile = "none"\nsniSslProfiles = "trust"\n'
        "[[listener]]\nport = 3\nrequireSsl = true\nrequireEncryption = true\n"
    )
    assert [each.partition(": ")[0] for each in mistakes(text)] == [
        "listener[1].sslProfile",
        "listener[1].sniSslProfiles",
        "listener[2].requireSsl",
        "listener[2].requireEncryption",
    ]


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        (
            '[[connector]]\nsaslMechanisms = "EXTERNAL"',
            "connector[0].saslMechanisms: has only EXTERNAL, but",
        ),
        (
            '[[connector]]\nsslProfile = "trust"\nsaslMechanisms = "EXTERNAL"',
            "connector[0].saslMechanisms: has only EXTERNAL, but",
        ),
        (
            (
                '[[listener]]\nsslProfile = "both"\nsaslMechanisms = "EXTERNAL"\n'
                'authenticatePeer = true\nclientCertificate = "none"'
            ),
            "listener[0].authenticatePeer: lets no peer in, because peers are not asked",
        ),
    ],
)
def test_a_login_by_certificate_needs_one(text: str, mistake: str) -> None:
    [found] = mistakes(text)
    assert found.startswith(mistake)
