"""The whole configuration as one thing, by requests to a running router."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)
from structlog.testing import capture_logs

from router.client import ManagementClient, RequestRefused, connect_management
from router.config.connectors import ConnectorSettings
from router.config.listeners import ListenerSettings
from router.config.load import parse_configuration
from router.config.model import ENTITIES, AddressSettings, Configuration
from router.config.proxy_profiles import ProxyProfileSettings
from router.config.saved import StateFile
from router.config.secret import Secret
from router.config.setting import setting_of
from router.config.ssl_profiles import SslProfileSettings
from router.management.configuration_operations import MAX_DIFFERENCES
from router.management.requests import BAD_REQUEST, FORBIDDEN, NOT_FOUND

from support.certificates import Authority
from support.loopback import Running, running_node

CONFIGURATION = Configuration(
    listeners=(ListenerSettings(port=0, name="l"),),
    connectors=(
        ConnectorSettings(
            name="c", port=1, sasl_username="u", sasl_password=Secret("literal", "hidden")
        ),
    ),
)
MORE = '\n[[address]]\nprefix = "a"\ndistribution = "multicast"\n'
ADDED = {
    "entity": "address",
    "key": "router.config.address/a",
    "what": "added",
    "fields": {"prefix": [None, "a"], "distribution": ["balanced", "multicast"]},
}


@asynccontextmanager
async def managed(
    configuration: Configuration = CONFIGURATION,
) -> AsyncIterator[tuple[Running, ManagementClient]]:
    async with running_node(configuration) as running:
        host, port = running.address
        async with connect_management(f"amqp://{host}:{port}") as management:
            yield running, management


async def refused(management: ManagementClient, *request: Any) -> tuple[int, str]:
    with pytest.raises(RequestRefused) as raised:
        await management.request(*request)
    return raised.value.status, raised.value.description


async def test_what_runs_is_shown_without_passwords_and_exported_with_them() -> None:
    async with managed() as (running, management):
        shown = await management.request("GET-CONFIGURATION")
        assert (shown["revision"], shown["saved"]) == (1, None)
        assert "hidden" not in str(shown)
        exported = await management.request("EXPORT-CONFIGURATION")
        text = exported["configuration"]
        assert parse_configuration(text, source="x") == running.node.configuration


async def test_no_entity_s_password_is_shown_and_each_is_kept(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    certificate = authority.issue("localhost")
    key = load_pem_private_key(certificate.read_bytes(), None)
    encrypted = BestAvailableEncryption(b"hidden key")
    key_file = authority.folder / "key.pem"
    key_file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encrypted))
    profile = SslProfileSettings(
        name="s",
        cert_file=certificate,
        private_key_file=key_file,
        password=Secret("literal", "hidden key"),
    )
    proxy = ProxyProfileSettings(
        name="p", host="h", port=1, username="u", password=Secret("literal", "hidden")
    )
    wanted = attrs.evolve(CONFIGURATION, ssl_profiles=(profile,), proxy_profiles=(proxy,))
    async with managed(wanted) as (running, management):
        text = (await management.request("GET-CONFIGURATION"))["configuration"]
        assert "hidden" not in text
        assert text.count("(a secret)") == 3
        await management.request("APPLY", {}, text + MORE)
        configuration = running.node.configuration
        assert len(configuration.addresses) == 1
        assert configuration.ssl_profiles == (profile,)
        assert configuration.proxy_profiles == (proxy,)
        lost = text.replace('name = "p"', 'name = "other"')
        status, reason = await refused(management, "APPLY", {}, lost)
    assert status == BAD_REQUEST
    assert "proxyProfile[0].password (other): (a secret) stands for" in reason


def test_each_entity_with_a_password_has_a_name_and_may_be_repeated() -> None:
    for entity in ENTITIES:
        fields = attrs.fields_dict(entity.settings)
        if any(setting_of(field).kind.secret for field in fields.values()):
            assert entity.repeated
            assert "name" in fields


async def test_what_is_applied_runs_and_what_was_run_comes_back() -> None:
    async with managed() as (running, management):
        text = (await management.request("GET-CONFIGURATION"))["configuration"]
        looked = await management.request("APPLY", {"dryRun": True}, text + MORE)
        assert looked["differences"] == [ADDED]
        assert (looked["dryRun"], looked["revision"], looked["count"]) == (True, 1, 1)
        assert running.node.configuration is CONFIGURATION
        done = await management.request("APPLY", {"comment": "of a test"}, text + MORE)
        assert done["differences"] == [ADDED]
        assert (done["dryRun"], done["revision"], done["saved"]) == (False, 2, None)
        assert len(running.node.configuration.addresses) == 1
        # the password that was not shown is the one there was
        assert running.node.configuration.connectors == CONFIGURATION.connectors
        back = await management.request("ROLLBACK")
        assert (back["revision"], back["count"]) == (3, 1)
        assert running.node.configuration == CONFIGURATION
        await management.request("ROLLBACK", {"revision": 2})
        revisions = await management.request("GET-REVISIONS")
    causes = {each["revision"]: each["cause"].partition(":")[0] for each in revisions}
    assert causes == {
        4: "ROLLBACK to revision 2, by anonymous at 127.0.0.1",
        3: "ROLLBACK to revision 1, by anonymous at 127.0.0.1",
        2: "APPLY of a test, by anonymous at 127.0.0.1",
        1: "start",
    }
    assert revisions[2]["places"] == ["+ address router.config.address/a"]
    assert revisions[2]["differences"] == 1


async def test_what_is_the_same_is_no_revision() -> None:
    async with managed() as (_, management):
        text = (await management.request("GET-CONFIGURATION"))["configuration"]
        done = await management.request("APPLY", {}, text)
        assert (done["revision"], done["count"], done["differences"]) == (1, 0, [])


async def test_every_mistake_is_told_and_nothing_changes() -> None:
    async with managed() as (running, management):
        status, reason = await refused(
            management, "APPLY", {}, '[[listener]]\nport = "x"\n[[address]]\n[odd]\n'
        )
        assert status == BAD_REQUEST
        lines = reason.splitlines()
        assert [line.split(" ")[:2] for line in lines] == [
            ["the", "configuration:2:"],
            ["the", "configuration:3:"],
            ["the", "configuration:4:"],
        ]
        taken = f'[[listener]]\nport = {running.address[1]}\nname = "other"\nhost = "127.0.0.1"\n'
        for body, words in [
            ("not TOML", "is not TOML"),
            (None, "the body of an APPLY"),
            (5, "the body of an APPLY"),
            ('[router]\nid = "other"\n', "router.id cannot be changed"),
            ('[[listener]]\nport = 0\nname = "l"\n' + taken, "Address already in use"),
            (
                '[[connector]]\nname = "d"\nsaslUsername = "u"\nsaslPassword = "(a secret)"\n',
                r"connector[0].saslPassword (d): (a secret) stands for",
            ),
        ]:
            status, reason = await refused(management, "APPLY", {}, body)
            assert status == BAD_REQUEST
            assert words in reason
            assert running.node.configuration is CONFIGURATION
            assert running.node.history.current.number == 1


async def test_nobody_applies_to_what_was_changed_since_it_was_looked_at() -> None:
    async with managed() as (_, management):
        text = (await management.request("GET-CONFIGURATION"))["configuration"]
        await management.request("APPLY", {"ifRevision": 1}, text + MORE)
        status, reason = await refused(management, "APPLY", {"ifRevision": 1}, text)
        assert (status, reason) == (
            BAD_REQUEST,
            "the router runs revision 2, not 1 (ifRevision)",
        )


@pytest.mark.parametrize(
    ("operation", "properties", "status"),
    [
        ("APPLY", {"dryRun": "perhaps"}, BAD_REQUEST),
        ("APPLY", {"dryRun": 1}, BAD_REQUEST),
        ("APPLY", {"ifRevision": -1}, BAD_REQUEST),
        ("APPLY", {"comment": 5}, BAD_REQUEST),
        ("ROLLBACK", {"revision": "one"}, BAD_REQUEST),
        ("ROLLBACK", {"revision": 7}, NOT_FOUND),
        ("ROLLBACK", {}, NOT_FOUND),
    ],
)
async def test_what_is_asked_wrongly_is_told_so(
    operation: str, properties: dict[str, Any], status: int
) -> None:
    async with managed() as (running, management):
        body = "" if operation == "APPLY" else None
        assert (await refused(management, operation, properties, body))[0] == status
        assert running.node.configuration is CONFIGURATION


async def test_true_may_be_text() -> None:
    async with managed() as (running, management):
        assert (await management.request("APPLY", {"dryRun": "True"}, ""))["dryRun"]
        assert running.node.configuration is CONFIGURATION


async def test_paths_are_relative_to_the_router_s_own_file(tmp_path: Path) -> None:
    async with managed() as (running, management):
        running.node.base = attrs.evolve(running.node.base, file=tmp_path / "trioute.toml")
        text = '[[listener]]\nsaslMechanisms = ["PLAIN"]\nusersFile = "users"\n'
        _, reason = await refused(management, "APPLY", {}, text)
        assert '"users" cannot be read: No such file' in reason
        (tmp_path / "users").write_text("", encoding="utf-8")
        await management.request("APPLY", {"dryRun": True}, text)


async def test_where_it_is_saved_is_told(tmp_path: Path) -> None:
    async with managed() as (running, management):
        running.node.state_file = StateFile(tmp_path / "state")
        done = await management.request("APPLY", {}, '[[listener]]\nname = "l"\nport = 0\n')
        assert done["saved"] == str(tmp_path / "state")
        assert (tmp_path / "state").exists()


async def test_many_differences_are_counted_and_so_many_told() -> None:
    many = Configuration(
        listeners=CONFIGURATION.listeners,
        addresses=tuple(AddressSettings(prefix=f"a/{n}") for n in range(MAX_DIFFERENCES + 5)),
    )
    async with managed(many) as (_, management):
        done = await management.request("APPLY", {}, '[[listener]]\nname = "l"\nport = 0\n')
        assert done["count"] == MAX_DIFFERENCES + 5
        assert len(done["differences"]) == MAX_DIFFERENCES
        (last, _) = await management.request("GET-REVISIONS")
        assert (last["differences"], len(last["places"])) == (MAX_DIFFERENCES + 5, 20)


@pytest.mark.parametrize("operation", ["APPLY", "ROLLBACK", "EXPORT-CONFIGURATION"])
async def test_who_may_only_read_neither_changes_nor_sees_passwords(operation: str) -> None:
    reading = attrs.evolve(CONFIGURATION.listeners[0], management="read")
    configuration = attrs.evolve(CONFIGURATION, listeners=(reading,))
    async with managed(configuration) as (running, management):
        assert (await refused(management, operation, {}, ""))[0] == FORBIDDEN
        assert running.node.configuration is configuration
        await management.request("GET-CONFIGURATION")
        await management.request("GET-REVISIONS")


async def test_the_log_tells_by_which_connection_a_change_came() -> None:
    async with managed() as (_, management):
        with capture_logs() as logs:
            await management.request("GET-REVISIONS")
            await management.request("APPLY", {"dryRun": True}, "")
    (line,) = (each for each in logs if each["event"] == "management change")
    assert (line["operation"], line["connection"]) == ("APPLY", 1)
