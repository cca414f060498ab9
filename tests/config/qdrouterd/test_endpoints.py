"""Converted listeners and connectors keep what they require of peers, or the loss is reported."""

from __future__ import annotations

from typing import Any

import pytest

from router.config.qdrouterd.sections import read_sections
from router.config.qdrouterd.translation import translate


def endpoint(name: str, *lines: str) -> tuple[dict[str, Any] | None, list[tuple[str, str]]]:
    """Return the one table that is made of a section, if any, and what is said of it."""
    text = "\n".join([f"{name} {{", *lines, "}", "router {", "mode: interior", "}"])
    made = translate(read_sections(text, "f"), "f")
    assert made.mistakes == []
    remarks: list[tuple[str, str]] = [
        (each.sort, each.path.partition(".")[2])
        for each in made.remarks
        if each.sort not in ("default", "old") and each.path != "router.mode"
    ]
    return next(iter(made.data.get(name, [])), None), remarks


@pytest.mark.parametrize(
    ("lines", "mechanisms", "must", "remarks"),
    [
        (["saslMechanisms: ANONYMOUS", "authenticatePeer: no"], "ANONYMOUS", False, []),
        (["usersFile: u", "saslMechanisms: PLAIN", "authenticatePeer: yes"], "PLAIN", True, []),
        (
            ["saslMechanisms: EXTERNAL ANONYMOUS"],
            "ANONYMOUS",
            None,
            [("missing", "saslMechanisms")],
        ),
        (["saslMechanisms: PLAIN,ANONYMOUS"], "ANONYMOUS", None, [("missing", "saslMechanisms")]),
        (["saslMechanisms: EXTERNAL"], "ANONYMOUS", None, [("missing", "saslMechanisms")]),
        (
            ["usersFile: u", "saslMechanisms: PLAIN DIGEST-MD5", "authenticatePeer: yes"],
            "PLAIN",
            True,
            [("missing", "saslMechanisms")],
        ),
        (["saslMechanisms: ANONYMOUS", "authenticatePeer: yes"], "ANONYMOUS", True, []),
    ],
)
def test_mechanisms(
    lines: list[str], mechanisms: str, must: bool | None, remarks: list[tuple[str, str]]
) -> None:
    table, found = endpoint("listener", *lines)
    assert table is not None
    assert table["saslMechanisms"] == mechanisms
    assert table.get("authenticatePeer") is must
    assert found == remarks


@pytest.mark.parametrize(
    "lines",
    [
        ["authenticatePeer: yes"],
        ["authenticatePeer: yes", "saslMechanisms: EXTERNAL"],
        ["authenticatePeer: yes", "saslMechanisms: PLAIN ANONYMOUS"],
        ["allowNoSasl: no"],
        ["requirePeerAuth: yes"],
    ],
)
def test_nobody_is_let_in_by_mistake(lines: list[str]) -> None:
    table, found = endpoint("listener", *lines)
    assert ("guard", "authenticatePeer") in found
    assert table is not None
    assert table["authenticatePeer"] is False


@pytest.mark.parametrize("key", ["saslPlugin"])
def test_what_keeps_a_listener_secure_is_guarded(key: str) -> None:
    assert endpoint("listener", f"{key}: x")[1] == [("guard", key)]


@pytest.mark.parametrize("key", ["requireSsl", "requireEncryption"])
def test_flags_that_keep_a_listener_secure_are_guarded(key: str) -> None:
    assert endpoint("listener", f"{key}: yes")[1] == [("guard", key)]
    assert endpoint("listener", f"{key}: no")[1] == []


@pytest.mark.parametrize("name", ["listener", "connector"])
def test_other_routers_are_connected_with(name: str) -> None:
    table, found = endpoint(name, "role: inter-router", "cost: 5")
    assert table is not None
    assert (table["role"], table["cost"]) == ("inter-router", 5)
    assert found == []


@pytest.mark.parametrize("role", ["normal", "route-container", "edge"])
def test_what_is_no_way_to_another_interior_router_costs_nothing(role: str) -> None:
    table, found = endpoint("listener", f"role: {role}", "cost: 5")
    assert table is not None
    assert "cost" not in table
    assert found == [("ignored", "cost")]
    assert endpoint("listener", f"role: {role}", "cost: 1")[1] == []


def test_http_keeps_what_it_has() -> None:
    table, found = endpoint(
        "listener", "port: 8080", "http: yes", "authenticatePeer: no", "linkCapacity: 5",
        "websockets: no", "httpRootDir: /x", "sslProfile: p",
    )  # fmt: skip
    assert table == {
        "host": "0.0.0.0", "port": 8080, "http": True, "websockets": False, "sslProfile": "p",
    }  # fmt: skip
    assert found == [("ignored", "linkCapacity"), ("missing", "httpRootDir")]


def test_files_are_served_by_http_alone() -> None:
    table, found = endpoint("listener", "port: 8080", "httpRoot: /x")
    assert table is not None
    assert table["http"] is True
    assert ("missing", "httpRootDir") in found


def test_http_that_would_serve_nothing() -> None:
    lines = ["http: yes", "metrics: no", "healthz: no", "websockets: no"]
    assert endpoint("listener", *lines) == (None, [("missing", "")])


def test_http_serves_web_sockets_as_dispatch_does() -> None:
    table, found = endpoint(
        "listener", "port: 8080", "http: yes", "authenticatePeer: no", "linkCapacity: 5",
        "sslProfile: p", "requireSsl: yes", "saslMechanisms: ANONYMOUS",
    )  # fmt: skip
    assert table is not None
    assert (table["websockets"], table["linkCapacity"]) == (True, 5)
    assert table["saslMechanisms"] == "ANONYMOUS"
    assert not {"requireSsl", "requireEncryption", "cost"} & set(table)
    assert found == []


def test_http_with_tls_asks_for_a_certificate_as_dispatch_does() -> None:
    lines = ["port: 8080", "http: yes", "authenticatePeer: yes", "sslProfile: p"]
    table, found = endpoint("listener", *lines)
    assert table is not None
    assert (table["clientCertificate"], table["saslMechanisms"]) == ("required", "EXTERNAL")
    assert table["authenticatePeer"] is True
    assert found == []
    table, found = endpoint("listener", *lines, "saslMechanisms: ANONYMOUS")
    assert table is not None
    assert (table["clientCertificate"], table["websockets"]) == ("required", False)
    assert found == [("changed", "websockets")]
    table, _ = endpoint("listener", *lines, "websockets: no")
    assert table is not None
    assert table["clientCertificate"] == "required"
    table, _ = endpoint("listener", *lines[:3], "saslMechanisms: ANONYMOUS")
    assert table is not None
    assert table["websockets"] is False
    assert "clientCertificate" not in table


@pytest.mark.parametrize(
    ("given", "kept"),
    [("literal:pw", "pass:literal:pw"), ("pass:pw", "pass:pw"), ("pw", "pw")],
    ids=["literal", "pass", "plain"],
)
def test_literal_is_a_part_of_the_password_that_a_connector_logs_in_with(
    given: str, kept: str
) -> None:
    table, _ = endpoint("connector", "saslUsername: me", f"saslPassword: {given}")
    assert table is not None
    assert table["saslPassword"] == kept


def test_no_router_connects_by_web_sockets() -> None:
    table, found = endpoint("listener", "port: 8080", "http: yes", "role: inter-router", "cost: 2")
    assert table is not None
    assert "role" not in table
    assert "cost" not in table
    assert found == [("missing", "role")]


def test_what_is_for_http_alone() -> None:
    table, found = endpoint("listener", "metrics: no", "websockets: no", "healthz: no")
    assert table is not None
    assert not {"metrics", "healthz", "websockets"} & set(table)
    assert found == []


def test_all_addresses_of_a_family() -> None:
    table, _ = endpoint("listener", "protocolFamily: IPv6")
    assert table is not None
    assert (table["host"], table["socketAddressFamily"]) == ("::", "IPv6")


@pytest.mark.parametrize(
    ("lines", "mechanisms", "remarks"),
    [
        (["saslUsername: me", "saslPassword: pw"], None, []),
        (["saslMechanisms: PLAIN ANONYMOUS"], "ANONYMOUS", [("ignored", "saslMechanisms")]),
        (
            ["saslMechanisms: DIGEST-MD5 SCRAM-SHA-1", "saslUsername: me", "saslPassword: pw"],
            "SCRAM-SHA-1",
            [("ignored", "saslMechanisms")],
        ),
        (
            ["saslMechanisms: ANONYMOUS", "saslUsername: me", "saslPassword: pw"],
            "ANONYMOUS",
            [("ignored", "saslUsername"), ("ignored", "saslPassword")],
        ),
        (
            ["saslMechanisms: XOAUTH2 OAUTHBEARER", "saslUsername: me", "saslPassword: token"],
            "XOAUTH2 OAUTHBEARER",
            [],
        ),
        (["saslMechanisms: XOAUTH2 ANONYMOUS"], "ANONYMOUS", [("ignored", "saslMechanisms")]),
    ],
)
def test_how_a_connector_logs_in(
    lines: list[str], mechanisms: str | None, remarks: list[tuple[str, str]]
) -> None:
    table, found = endpoint("connector", *lines)
    assert table is not None
    assert table.get("saslMechanisms") == mechanisms
    assert found == remarks


def test_a_connector_that_cannot_log_in() -> None:
    found = endpoint("connector", "saslMechanisms: EXTERNAL")
    assert found == (None, [("missing", "saslMechanisms")])


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_users_of_cyrus_are_missed(mechanism: str) -> None:
    table, found = endpoint("listener", f"saslMechanisms: {mechanism} ANONYMOUS")
    assert table is not None
    assert table["saslMechanisms"] == "ANONYMOUS"
    assert found == [("missing", "saslMechanisms")]


def test_peers_without_tls_come_in_as_they_did() -> None:
    table, found = endpoint("listener", "sslProfile: p", "saslMechanisms: EXTERNAL")
    assert table is not None
    assert (table["requireSsl"], table["saslMechanisms"]) == (False, "EXTERNAL")
    table, _ = endpoint("listener", "sslProfile: p", "requireSsl: yes")
    assert table is not None
    assert table["requireSsl"] is True
    assert found == []


def test_a_certificate_needs_tls() -> None:
    table, found = endpoint("connector", "saslMechanisms: EXTERNAL ANONYMOUS")
    assert table is not None
    assert table["saslMechanisms"] == "ANONYMOUS"
    assert found == [("ignored", "saslMechanisms")]


def test_a_profile_keeps_what_is_safe() -> None:
    table, found = endpoint(
        "sslProfile", "name: p", "passwordFile: /pw", "protocols: TLSv1 TLSv1.2", "uidFormat: x"
    )
    assert table is not None
    assert (table["password"], table["protocols"]) == ("file:/pw", "TLSv1.2")
    assert "uidFormat" not in table
    assert found == [("missing", "protocols"), ("missing", "uidFormat")]
    table, _ = endpoint(
        "sslProfile", "name: p", "protocols: TLSv1", "password: x", "passwordFile: y"
    )
    assert table is not None
    assert "protocols" not in table
    assert table["password"] == "x"


@pytest.mark.parametrize("key", ["requireSsl", "requireEncryption"])
def test_what_requires_tls_stays_where_there_is_a_profile(key: str) -> None:
    table, found = endpoint("listener", "sslProfile: p", f"{key}: yes")
    assert table is not None
    assert {name for name in table if name.startswith("require")} == {key}
    assert table[key] is True
    assert found == []


@pytest.mark.parametrize("line", ["requireSsl: no", "requireEncryption: no", "cost: 1"])
def test_what_does_not_require_tls_does_not_here(line: str) -> None:
    table, found = endpoint("listener", "sslProfile: p", line)
    assert table is not None
    assert table["requireSsl"] is False
    assert found == []


def test_a_connector_shows_its_certificate_where_it_has_tls() -> None:
    table, found = endpoint("connector", "sslProfile: p", "saslMechanisms: EXTERNAL")
    assert table is not None
    assert (table["sslProfile"], table["saslMechanisms"]) == ("p", "EXTERNAL")
    assert found == []


@pytest.mark.parametrize(
    ("versions", "kept", "dropped"),
    [
        ("TLSv1.2", "TLSv1.2", 0),
        ("TLSv1.3,TLSv1.2", "TLSv1.3 TLSv1.2", 0),
        ("TLSv1.2 TLSv1.2", "TLSv1.2", 0),
        ("TLSv1 TLSv1.1 TLSv1.2", "TLSv1.2", 2),
        ("TLSv1 TLSv1.1", None, 2),
    ],
)
def test_versions_that_are_not_safe_are_missed(
    versions: str, kept: str | None, dropped: int
) -> None:
    table, found = endpoint("sslProfile", "name: p", f"protocols: {versions}")
    assert table is not None
    assert table.get("protocols") == kept
    assert found == [("missing", "protocols")] * dropped


@pytest.mark.parametrize(
    ("uid_format", "is_kept"), [("cslounp", False), ("nn", False), ("csloun", True), ("2", True)]
)
def test_only_a_valid_format_of_names_is_kept(uid_format: str, is_kept: bool) -> None:
    table, found = endpoint("sslProfile", "name: p", f"uidFormat: {uid_format}")
    assert table is not None
    assert ("uidFormat" in table) is is_kept
    assert found == ([] if is_kept else [("missing", "uidFormat")])


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([], True),
        (["saslMechanisms: PLAIN ANONYMOUS"], True),
        (["saslMechanisms: SCRAM-SHA-1"], None),
        (["sslProfile: p"], None),
        (["host: localhost"], None),
        (["allowInsecureAuthentication: no"], False),
        (["saslMechanisms: XOAUTH2"], True),
    ],
    ids=["default", "PLAIN", "SCRAM", "TLS", "loopback", "given", "token"],
)
def test_passwords_go_where_dispatch_sends_them(lines: list[str], found: bool | None) -> None:
    usual = ["host: b", "saslUsername: u", "saslPassword: p"]
    kept = [line for line in usual if line.partition(":")[0] not in str(lines)]
    table, remarks = endpoint("connector", *kept, *lines)
    assert table is not None
    assert table.get("allowInsecureAuthentication") is found
    assert remarks == []


def test_who_has_no_password_needs_no_leave() -> None:
    table, _ = endpoint("connector", "host: b")
    assert table is not None
    assert "allowInsecureAuthentication" not in table
