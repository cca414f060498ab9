"""The reference page says what the model says, and the one in the tree is current."""

from __future__ import annotations

import runpy
from pathlib import Path

import attrs
import pytest

from router.config.listeners import ListenerSettings
from router.config.model import ENTITIES
from router.config.reference import format_reference
from router.config.setting import file_name, setting_of

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/configuration.md"

MECHANISMS = attrs.fields(ListenerSettings).sasl_mechanisms


def test_the_page_in_the_tree_is_current() -> None:
    # without a diff of two long texts
    is_current = PAGE.read_text(encoding="utf-8") == format_reference()
    assert is_current, f"{PAGE} is stale: run `make docs`"


def test_every_attribute_is_on_the_page() -> None:
    page = format_reference()
    for entity in ENTITIES:
        section = page.split(f"\n## {entity.name}\n")[1].split("\n## ")[0]
        for field in attrs.fields(entity.settings):
            setting = setting_of(field)
            assert f"| `{file_name(field.name)}` | {setting.description} |" in section
            assert setting.kind.words in section


@pytest.mark.parametrize(
    ("attribute", "default", "allowed"),
    [
        ("idleTimeoutSeconds", "`16`", "a number of seconds: 0 (never), or from 0.001 to 4294967"),
        ("healthz", "`true`", "true or false"),
        ("port", "`5672`", 'a whole number from 1 to 65535, "amqp" (5672) or "amqps" (5671)'),
        ("id", "the name of the host", "text of 1 to 127 printable characters without spaces"),
        ("saslMechanisms", '`["ANONYMOUS"]`', setting_of(MECHANISMS).kind.words),
    ],
)
def test_how_a_row_reads(attribute: str, default: str, allowed: str) -> None:
    rows = [line for line in format_reference().splitlines() if line.startswith(f"| `{attribute}`")]
    assert any(row.endswith(f". | {default} | {allowed} |") for row in rows)


def test_the_command_prints_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(Path(format_reference.__code__.co_filename)), run_name="__main__")
    assert capsys.readouterr().out == format_reference()
