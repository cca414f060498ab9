"""Policies of Dispatch files: folders with vhosts, and groups."""

from __future__ import annotations

from pathlib import Path

import pytest

from router.config.mistakes import InvalidConfiguration
from router.config.model import Configuration
from router.config.qdrouterd.document import Document
from router.config.qdrouterd.policies import with_policy_folder
from router.config.qdrouterd.reading import parse_dispatch

CONF = "router {\nid: A\n}\npolicy {\nenableVhostPolicy: yes\npolicyDir: vhosts\n}\n"
VHOST = '["vhost", {"hostname": "%s", "groups": {"g": {"users": "u", "remoteHosts": "*"}}}]'


def load(folder: Path, text: str = CONF) -> Configuration:
    """Return the configuration of a Dispatch file in a folder."""
    return parse_dispatch(text, "sections", source="f", folder=folder).configuration


def refused(folder: Path) -> list[str]:
    """Return the mistakes of the file, and of the files in its policyDir."""
    with pytest.raises(InvalidConfiguration) as caught:
        load(folder)
    return [str(each) for each in caught.value.mistakes]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder of a file, which has a folder for vhosts."""
    (tmp_path / "vhosts").mkdir()
    return tmp_path


def test_the_vhosts_of_all_files_are_read_in_the_order_of_names(folder: Path) -> None:
    (folder / "vhosts" / "b.json").write_text(f"[{VHOST % 'b.com'}]", encoding="utf-8")
    text = f"# comment\n[{VHOST % 'a.com'}, {VHOST % 'c.com'}]"
    (folder / "vhosts" / "a.json").write_text(text, encoding="utf-8")
    (folder / "vhosts" / "notes.txt").write_text("not a policy", encoding="utf-8")
    found = load(folder)
    assert found.policy.enable_vhost_policy
    assert [each.hostname for each in found.vhosts] == ["a.com", "c.com", "b.com"]
    assert found.vhosts[0].groups["g"].remote_hosts == ("*",)


def test_vhosts_in_the_file_come_first(folder: Path) -> None:
    (folder / "vhosts" / "b.json").write_text(f"[{VHOST % 'b.com'}]", encoding="utf-8")
    found = load(folder, CONF + "vhost {\nhostname: own\n}\n")
    assert [each.hostname for each in found.vhosts] == ["own", "b.com"]


def test_a_folder_that_is_missing(tmp_path: Path) -> None:
    mistakes = refused(tmp_path)
    assert any("policy.policyDir: vhosts cannot be read: No such file" in each for each in mistakes)


@pytest.mark.parametrize(
    ("octets", "said"),
    [
        (b"[", "b.json"),
        (b"\xff\xfe", "is not UTF-8 text"),
        (b'[["listener", {"port": 1}]]', "has listener; a file in policyDir may have only vhosts"),
        (
            b'[["vhost", {"hostname": "a", "groups": {"g": {"maxSenders": "x"}}}]]',
            "groups.g.maxSenders",
        ),
        (b'[["vhost", {"hostname": "a", "groups": {"g": []}}]]', "groups.g"),
    ],
    ids=["syntax", "encoding", "entity", "value", "group"],
)
def test_mistakes_in_files(folder: Path, octets: bytes, said: str) -> None:
    (folder / "vhosts" / "b.json").write_bytes(octets)
    assert any(said in each for each in refused(folder))


def test_a_document_without_a_folder_is_unchanged() -> None:
    document = Document(())
    assert with_policy_folder(document, None, "f") == document
