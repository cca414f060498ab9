"""Profiles whose files cannot be used are found before a router uses them."""

from __future__ import annotations

from pathlib import Path

from router.config.listeners import ListenerSettings
from router.config.model import Configuration
from router.config.ssl_profiles import SslProfileSettings
from router.net.tls.checking import find_unusable_profiles

from support.certificates import Authority


def found(listeners: tuple[ListenerSettings, ...], *profiles: SslProfileSettings) -> list[str]:
    """Return the findings, each in one text."""
    configuration = Configuration(ssl_profiles=profiles, listeners=listeners)
    return [
        f"{each.path[1]} {each.path[2]} {each.problem}"
        for each in find_unusable_profiles(configuration, {})
    ]


def test_usable_files_are_no_mistake(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    listener = ListenerSettings(ssl_profile="tls", sni_ssl_profiles=("more",))
    assert found((listener,), authority.profile(), authority.profile("more")) == []
    assert found((), SslProfileSettings(name="client")) == []


def test_a_file_that_is_missing_is_found_without_any_use(tmp_path: Path) -> None:
    profile = SslProfileSettings(name="p", cert_file=tmp_path / "missing")
    problem = "0 certFile cannot be read: No such file or directory"
    assert found((), profile) == [problem]
    assert found((ListenerSettings(ssl_profile="p"),), profile) == [problem]


def test_what_only_a_listener_needs_is_found_at_its_profile(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    names = tmp_path / "names.json"
    names.write_text("[]", encoding="utf-8")
    profile = authority.profile("named", uid_name_mapping_file=names)
    listener = ListenerSettings(ssl_profile="named")
    problem = "1 uidNameMappingFile is not a JSON object whose values are texts"
    assert found((listener,), authority.profile(), profile) == [problem]


def test_other_mistakes_are_left_to_other_checks(tmp_path: Path) -> None:
    listener = ListenerSettings(ssl_profile="missing")
    bare = ListenerSettings(ssl_profile="client")
    assert found((listener, bare), SslProfileSettings(name="client")) == []


def test_a_mistake_stands_at_its_profile(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    gone = SslProfileSettings(name="b", cert_file=tmp_path / "gone")
    problem = "2 certFile cannot be read: No such file or directory"
    for first in (authority.profile("a"), SslProfileSettings()):
        assert found((), first, first, gone) == [problem]
