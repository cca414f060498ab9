"""A file of Dispatch's as the configuration that runs, and as a report."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from router.config.mistakes import InvalidConfiguration
from router.config.model import Configuration
from router.config.qdrouterd.reading import InvalidDispatch, LoadedDispatch, parse_dispatch
from router.config.qdrouterd.report import FLAG
from router.config.qdrouterd.syntax import Syntax

SHIPPED = """\
router {
    mode: standalone
}
listener {
    host: 0.0.0.0
    port: amqp
    authenticatePeer: no
    saslMechanisms: ANONYMOUS
}
address {
    prefix: closest
    distribution: closest
}
"""


def moved(
    text: str, syntax: Syntax = "sections", *, weaker_security: bool = False
) -> LoadedDispatch:
    """Return what becomes of a text."""
    return parse_dispatch(text, syntax, source="f", weaker_security=weaker_security)


def test_what_everybody_begins_with() -> None:
    found = moved(SHIPPED)
    (listener,) = found.configuration.listeners
    assert (listener.host, listener.port) == ("0.0.0.0", 5672)
    assert (listener.max_frame_size, listener.link_capacity) == (16384, 250)
    assert [address.prefix for address in found.configuration.addresses] == ["closest"]
    assert {remark.sort for remark in found.report.remarks} == {"default"}


def test_the_json_form_says_the_same() -> None:
    json = """[
        ["router", {"mode": "standalone"}],
        ["listener", {"host": "0.0.0.0", "port": "amqp", "authenticatePeer": "no",
                      "saslMechanisms": "ANONYMOUS"}],
        ["org.apache.qpid.dispatch.router.config.address",
         {"prefix": "closest", "distribution": 1}]
    ]"""
    assert moved(json, "json").configuration == moved(SHIPPED).configuration


def test_an_empty_file_is_a_router() -> None:
    configuration = moved("").configuration
    assert configuration.router.link_stealing == "off"
    assert configuration.listeners == ()


def test_mistakes_have_the_place_in_the_file() -> None:
    mode = "router {\nmode: interior\n}\n"
    left_out = "connector {\nsaslMechanisms: EXTERNAL\n}\n"
    text = f"{mode}{left_out}listener {{\n}}\nlistener {{\nport: 5672\n}}\n"
    with pytest.raises(InvalidDispatch) as refused:
        moved(text)
    (mistake,) = refused.value.mistakes
    assert str(mistake) == (
        "f:10: listener[1].port: 5672 is taken: listener[0] also listens on 0.0.0.0:5672; "
        "give another port or another host"
    )
    assert [remark.line for remark in refused.value.report.of("missing")] == [5]


@pytest.mark.parametrize(
    ("mode", "role"), [("standalone", "edge"), ("edge", "inter-router"), ("interior", "edge")]
)
def test_roles_that_a_mode_does_not_have(mode: str, role: str) -> None:
    with pytest.raises(InvalidDispatch) as refused:
        moved(f"connector {{\nrole: {role}\n}}\nrouter {{\nmode: {mode}\n}}\n")
    (mistake,) = refused.value.mistakes
    assert str(mistake).startswith(
        f'f:2: connector[0].role: "{role}" is not allowed for a router with mode {mode}; '
    )


def test_less_security_has_to_be_asked_for() -> None:
    text = "listener {\nsaslPlugin: p\nrequireSsl: yes\n}\n"
    with pytest.raises(InvalidDispatch, match=FLAG) as refused:
        moved(text)
    assert [mistake.line for mistake in refused.value.mistakes] == [2, 3]
    assert len(moved(text, weaker_security=True).report.of("guard")) == 2


def test_files_are_beside_it(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("open sesame\n", encoding="utf-8")
    text = "connector {\nsaslUsername: me\nsaslPassword: file:secret\n}\n"
    found = parse_dispatch(text, "sections", source="f", folder=tmp_path)
    password = found.configuration.connectors[0].sasl_password
    assert password is not None
    assert password.reveal() == "open sesame"


@given(
    st.text('router listener{}:"#\\[],\n1') | st.text(),
    st.sampled_from(["sections", "json"]),
    st.booleans(),
)
def test_no_text_makes_it_fail(text: str, syntax: Syntax, weaker: bool) -> None:
    with contextlib.suppress(InvalidConfiguration):
        assert isinstance(moved(text, syntax, weaker_security=weaker).configuration, Configuration)
