"""Changes are saved for the next start, and entities are never mistaken for each other."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from router.config.connectors import ConnectorSettings
from router.config.load import default_configuration
from router.config.mistakes import InvalidConfiguration
from router.config.model import AddressSettings, Configuration
from router.config.saved import (
    BaseConfiguration,
    BaseEdited,
    Saved,
    StateFile,
    backup_path,
    choose_start,
    load_base,
    load_saved,
)
from router.config.secret import Secret

CHANGED = Configuration(
    addresses=(AddressSettings(prefix="a", distribution="multicast"),),
    connectors=(
        ConnectorSettings(sasl_username="u", sasl_password=Secret("literal", "env:no # secret")),
    ),
)


def based(folder: Path, text: str = "") -> BaseConfiguration:
    file = folder / "trioute.toml"
    file.write_text(text, encoding="utf-8")
    return load_base(file)


def kept(folder: Path, base: BaseConfiguration, configuration: Configuration) -> Saved | None:
    state_file = StateFile(folder / "state")
    state_file.save(base, configuration, 7, 0.0)
    return load_saved(state_file.file)


def test_what_was_saved_is_read_as_it_was_with_its_secrets(tmp_path: Path) -> None:
    base = based(tmp_path)
    assert kept(tmp_path, base, CHANGED) == Saved(CHANGED, base.digest, 7)
    text = (tmp_path / "state").read_text(encoding="utf-8")
    assert f"#: over {base.source}" in text
    assert "#: revision 7 of 1970-01-01T00:00:00+00:00" in text


def test_nothing_is_kept_of_what_is_in_the_file(tmp_path: Path) -> None:
    base = based(tmp_path)
    kept(tmp_path, base, CHANGED)
    assert kept(tmp_path, base, Configuration()) is None


def test_the_embedded_default_has_a_digest_too() -> None:
    base = load_base(None)
    assert base.configuration == default_configuration()
    assert (
        base.digest
        == BaseConfiguration(default_configuration()).digest
        != BaseConfiguration(CHANGED).digest
    )
    assert base.source == "the default configuration"


def test_a_file_that_is_not_there_is_told_as_such(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfiguration, match="cannot be read: No such file"):
        load_base(tmp_path / "none")


def test_without_anything_saved_the_file_is_run(tmp_path: Path) -> None:
    base = based(tmp_path, '[[address]]\nprefix = "b"\n')
    start = choose_start(base, None, tmp_path / "state", None)
    assert start.configuration is base.configuration
    assert start.differences == ()


def test_what_was_saved_is_run_over_the_file_that_it_was_saved_over(tmp_path: Path) -> None:
    base = based(tmp_path)
    start = choose_start(base, kept(tmp_path, base, CHANGED), tmp_path / "state", None)
    assert (start.configuration, start.revision, len(start.differences)) == (CHANGED, 7, 2)


def test_over_an_edited_file_nothing_is_run_until_it_is_said_what(tmp_path: Path) -> None:
    state = tmp_path / "state"
    saved = kept(tmp_path, based(tmp_path), CHANGED)
    edited = based(tmp_path, '[[address]]\nprefix = "b"\n')
    with pytest.raises(BaseEdited) as raised:
        choose_start(edited, saved, state, None)
    text = str(raised.value)
    assert "trioute.toml was edited after" in text
    assert "+ address router.config.address/a" in text
    assert "- address router.config.address/b" in text
    assert "secret" in text
    assert "no # secret" not in text
    assert choose_start(edited, saved, state, "saved").configuration == CHANGED
    assert choose_start(edited, saved, state, "file").configuration == edited.configuration


def test_comments_are_no_edit(tmp_path: Path) -> None:
    saved = kept(tmp_path, based(tmp_path), CHANGED)
    edited = based(tmp_path, "# nothing new\n[router]\n")
    assert choose_start(edited, saved, tmp_path / "state", None).configuration == CHANGED


def test_an_edited_file_that_has_all_of_it_is_run(tmp_path: Path) -> None:
    address = attrs.evolve(Configuration(), addresses=CHANGED.addresses)
    saved = kept(tmp_path, based(tmp_path), address)
    edited = based(tmp_path, '# edited\n[[address]]\nprefix = "a"\ndistribution = "multicast"\n')
    start = choose_start(edited, saved, tmp_path / "state", None)
    assert (start.configuration, start.differences) == (edited.configuration, ())


@pytest.mark.parametrize("text", ["", '[[address]]\nprefix = "a"\n', "#: revision 1 of x\n"])
def test_what_the_router_has_not_written_is_refused(tmp_path: Path, text: str) -> None:
    state = tmp_path / "state"
    state.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidConfiguration, match="does not say which configuration file"):
        load_saved(state)


def test_what_is_put_aside_is_still_there(tmp_path: Path) -> None:
    state_file = StateFile(tmp_path / "state")
    state_file.put_aside()
    assert kept(tmp_path, based(tmp_path), CHANGED) is not None
    state_file.put_aside()
    assert load_saved(state_file.file) is None
    found = load_saved(backup_path(state_file.file))
    assert found is not None
    assert found.configuration == CHANGED
