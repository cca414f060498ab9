"""Names in the file, and that a program's values are held to the rules of the file."""

from __future__ import annotations

import attrs
import pytest

from router.config import kinds
from router.config.setting import checked, file_name, setting, setting_of


@attrs.frozen(kw_only=True, field_transformer=checked)
class Sample:
    """An entity with an attribute of each sort that matters here."""

    port: int = attrs.field(default=1, metadata=setting(kinds.port(1), "The port."))
    id: str | None = attrs.field(default=None, metadata=setting(kinds.text(3), "The name."))


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("id", "id"),
        ("max_frame_size", "maxFrameSize"),
        ("idle_timeout_seconds", "idleTimeoutSeconds"),
        ("socket_address_family", "socketAddressFamily"),
    ],
)
def test_names_in_the_file(name: str, written: str) -> None:
    assert file_name(name) == written


def test_what_is_allowed_is_taken() -> None:
    assert Sample(port=5672, id="abc").id == "abc"


def test_none_is_taken_where_it_is_the_default() -> None:
    assert Sample(id=None).id is None
    with pytest.raises(ValueError, match=r"^port: None is not allowed; give a whole number from 1"):
        Sample(port=None)  # type: ignore[arg-type]


def test_what_is_not_allowed_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^id: 'abcd' is not allowed; give text of 1 to 3 "):
        Sample(id="abcd")


def test_what_a_file_may_say_in_another_form_is_refused_in_a_program() -> None:
    with pytest.raises(ValueError, match=r"^port: 'amqp' is not allowed"):
        Sample(port="amqp")  # type: ignore[arg-type]


def test_the_setting_is_on_the_field() -> None:
    assert setting_of(attrs.fields(Sample).port).description == "The port."
