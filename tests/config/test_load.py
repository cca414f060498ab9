"""Files to configurations: what is taken, every mistake at once by line, and the default."""

from __future__ import annotations

import contextlib
import re
import tomllib
from pathlib import Path

import attrs
import pytest
from hypothesis import given, strategies as st

from router.config.listeners import ListenerSettings
from router.config.load import (
    default_configuration,
    default_text,
    load_configuration,
    parse_configuration,
)
from router.config.mistakes import InvalidConfiguration
from router.config.model import ENTITIES, AddressSettings, Configuration
from router.config.router_settings import RouterSettings
from router.config.secret import Secret
from router.config.setting import file_name
from router.errors import ConfigurationError

ROOT = Path(__file__).resolve().parents[2]


def mistakes(text: str) -> list[str]:
    """Return every mistake in `text`, as people read it."""
    with pytest.raises(InvalidConfiguration) as caught:
        parse_configuration(text, source="f")
    return [str(mistake) for mistake in caught.value.mistakes]


def test_a_whole_file() -> None:
    text = """
        [router]
        id = "edge-1"
        [[listener]]
        host = "0.0.0.0"
        port = 5673
        saslMechanisms = "ANONYMOUS"
        idleTimeoutSeconds = 0.5
        openProperties = { site = "berlin" }
        [[address]]
        pattern = "a/*"
        distribution = "multicast"
        """
    assert parse_configuration(text, source="f") == Configuration(
        router=RouterSettings(id="edge-1"),
        listeners=(
            ListenerSettings(
                host="0.0.0.0",
                port=5673,
                idle_timeout_seconds=0.5,
                open_properties={"site": "berlin"},
            ),
        ),
        addresses=(AddressSettings(pattern="a/*", distribution="multicast"),),
    )


def test_an_empty_file_is_the_bare_defaults() -> None:
    assert parse_configuration("", source="f") == Configuration()


def test_every_mistake_is_said_at_once_in_the_order_of_the_file() -> None:
    text = """\
[router]
id = "a b"
defaultDistributon = "closest"

[[listener]]
port = 70000
max_frame_size = 4096
[[listener]]
http = "yes"
saslMechanisms = ["PLAIN", "SCRAM"]

[[connector]]
saslPassword = 12
[[address]]
prefx = "a"

[lisener]
"""
    # What is written over several lines here is one line: only the words are compared.
    expected = """
        f:2: router.id: "a b" is not allowed; give text of 1 to 127 printable characters without
            spaces
        f:3: router.defaultDistributon: is not a known attribute; did you mean
            defaultDistribution?
        f:6: listener[0].port: 70000 is not allowed; give a whole number from 0 to 65535 (0: any
            free port), "amqp" (5672) or "amqps" (5671)
        f:7: listener[0].max_frame_size: is not a known attribute; did you mean maxFrameSize?
        f:9: listener[1].http: "yes" is not allowed; give true or false
        f:10: listener[1].saslMechanisms: ["PLAIN", "SCRAM"] is not allowed; give a list of
            one or more of "ANONYMOUS", "PLAIN", "EXTERNAL", "SCRAM-SHA-1", "SCRAM-SHA-256",
            "SCRAM-SHA-512", "XOAUTH2" or "OAUTHBEARER", or the same in one text with spaces
        f:13: connector[0].saslPassword: (a secret) is not allowed; give text, or env:VARIABLE,
            file:PATH, pass:TEXT or literal:TEXT
        f:15: address[0].prefx: is not a known attribute; did you mean prefix?
        f:17: lisener: is not a known entity; did you mean listener?
        """
    assert " ".join(mistakes(text)).split() == expected.split()


def test_what_follows_from_a_mistake_is_not_another() -> None:
    # A refused port would be the default one, which the other listener has.
    assert len(mistakes("[[listener]]\nport = -1\n[[listener]]")) == 1
    assert len(mistakes("[[listener]]\nport = -1\n[[listener]]\n[[listener]]")) == 2
    assert len(mistakes('[[listener]]\nhttp = 1\nmetrics = true\nusersFile = ""')) == 2
    assert len(mistakes("address = [1]")) == 1


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a = ", "f:1:4"),
        ("[router]\n\nid 1", "f:3:4"),
        ("[router\n", "f:1:8"),
        ("[router]\nid = 1\nid = 2", "f:3:7"),
        ("a = [1,\n\n", "f:1:8"),
    ],
)
def test_what_is_not_toml_keeps_its_place(text: str, place: str) -> None:
    [mistake] = mistakes(text)
    # The words after it are those of tomllib, which differ from one Python to the next.
    assert mistake.startswith(f"{place}: is not TOML: ")
    assert "(at " not in mistake


def test_what_no_python_reads() -> None:
    assert mistakes("a = " + "9" * 5000) == ["f: has a number with too many digits"]
    [mistake] = mistakes("a = " + "[" * 100_000)
    assert "nested" in mistake


def test_a_file_names_its_mistakes(tmp_path: Path) -> None:
    path = tmp_path / "trioute.toml"
    path.write_text("[log]\nlevel = 'loud'\n", encoding="utf-8")
    with pytest.raises(InvalidConfiguration) as caught:
        load_configuration(path)
    [mistake] = caught.value.mistakes
    assert (mistake.source, mistake.line, mistake.path) == (str(path), 2, "log.level")
    assert mistake.value == '"loud"'


def test_a_mark_of_byte_order_does_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "trioute.toml"
    path.write_bytes(b"\xef\xbb\xbf[log]\r\nlevel = 'debug'\r\n")
    assert load_configuration(path).log.level == "debug"


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="gone: cannot be read: No such file or directory"):
        load_configuration(tmp_path / "gone")
    with pytest.raises(ConfigurationError, match="cannot be read: Is a directory"):
        load_configuration(tmp_path)
    with pytest.raises(ConfigurationError, match="cannot be read: embedded null byte"):
        load_configuration(Path("a\0b"))
    path = tmp_path / "latin1.toml"
    path.write_bytes("[router]\nid = 'é'\n".encode("latin-1"))
    with pytest.raises(ConfigurationError, match=r"latin1\.toml:2: is not UTF-8 text"):
        load_configuration(path)


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "users").touch()
    (tmp_path / "password").write_text("s3cret\n", encoding="utf-8")
    path = tmp_path / "trioute.toml"
    path.write_text(
        "[[listener]]\nsaslMechanisms = 'PLAIN'\nusersFile = 'users'\n"
        "[[connector]]\nsaslUsername = 'u'\nsaslPassword = 'file:password'\n",
        encoding="utf-8",
    )
    configuration = load_configuration(path)
    assert configuration.listeners[0].users_file == tmp_path / "users"
    assert configuration.connectors[0].sasl_password == Secret("file", str(tmp_path / "password"))
    assert configuration.connectors[0].sasl_password.reveal() == "s3cret"


# ------------------------------------------------------------------ the default


def test_the_default_is_what_is_promised() -> None:
    configuration = default_configuration()
    amqp, http = configuration.listeners
    assert amqp == ListenerSettings(name="amqp")
    assert http == ListenerSettings(name="http", port=9672, http=True)
    assert configuration.connectors == ()
    assert [(one.prefix, one.distribution) for one in configuration.addresses] == [
        ("closest", "closest"),
        ("multicast", "multicast"),
        ("unicast", "closest"),
        ("exclusive", "closest"),
        ("broadcast", "multicast"),
    ]
    assert attrs.evolve(configuration, listeners=(), addresses=()) == Configuration()


def test_the_deployed_default_is_the_packaged_one() -> None:
    deployed = ROOT / "deploy/trioute.toml"
    assert deployed.read_text(encoding="utf-8") == default_text()
    assert load_configuration(deployed) == default_configuration()


def test_the_default_file_shows_every_attribute() -> None:
    shown = tomllib.loads(re.sub(r"^#(?=[\[\w])", "", default_text(), flags=re.MULTILINE))
    for entity in ENTITIES:
        tables = shown[entity.name] if entity.repeated else [shown[entity.name]]
        keys = {key for table in tables for key in table}
        assert keys == {file_name(field.name) for field in attrs.fields(entity.settings)}


def test_what_the_default_file_comments_out_is_the_default() -> None:
    samples = "levels|id|metadata|socketAddressFamily|usersFile|openProperties|"
    samples += "protocolFamily|failoverUrls|sslProfile|sniSslProfiles|requireSsl|policyVhost|"
    samples += "authenticationPlugin|authorizationPlugin|claims"
    paragraphs = [
        paragraph
        if "#[[" in paragraph
        else re.sub(rf"^#(?!({samples}) )(?=\w+ = )", "", paragraph, flags=re.MULTILINE)
        for paragraph in default_text().split("\n\n")
    ]
    text = "\n\n".join(paragraphs)
    assert "\nlevel = " in text
    assert parse_configuration(text, source="f") == default_configuration()


# ------------------------------------------------------------------ any text

words = sorted(
    {entity.name for entity in ENTITIES}
    | {file_name(field.name) for entity in ENTITIES for field in attrs.fields(entity.settings)}
)
numbers = st.sampled_from(["1", "0", "-1", "5672", "true", "0.5", "nan", "0x" + "f" * 5000])
strings = st.sampled_from(['"PLAIN"', '"closest"', '"a/#"', '"/"', "''", '"env:TRIOUTE_NOT_SET"'])
others = st.sampled_from(["[]", "[1]", "[{}]", "{}", "{a = 1}", "1979-05-27"])
lines = st.one_of(
    st.sampled_from([f"[{entity.name}]" for entity in ENTITIES]),
    st.sampled_from([f"[[{entity.name}]]" for entity in ENTITIES]),
    st.builds("{} = {}".format, st.sampled_from(words), numbers | strings | others),
)


@given(st.lists(lines, max_size=20).map("\n".join))
def test_any_file_of_known_words_is_taken_or_is_a_configuration_error(text: str) -> None:
    try:
        parse_configuration(text, source="f")
    except InvalidConfiguration as invalid:
        for mistake in invalid.mistakes:
            assert mistake.source == "f"
            assert "\n" not in str(mistake)


@given(st.text())
def test_any_text_is_taken_or_is_a_configuration_error(text: str) -> None:
    with contextlib.suppress(ConfigurationError):
        parse_configuration(text, source="f")
