"""docs/security.md, followed word by word: its authority, its router, its clients and its lists."""

from __future__ import annotations

import itertools
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.commands import Command, Ended, run
from support.proton_peers import ProtonPeers
from support.routers import RouterProcess, running_router

PAGE = Path(__file__).resolve().parents[2] / "docs" / "security.md"
PATIENCE_S = 60.0


def blocks(heading: str) -> list[str]:
    """Return the indented blocks of a section of the page, without their indentation."""
    text = PAGE.read_text(encoding="utf-8")
    section = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    found = re.findall(r"(?m)(?:^    .*\n|^\n(?=    ))+", section)
    return [re.sub(r"(?m)^    ", "", each).strip("\n") for each in found if each.strip()]


def with_free_ports(configuration: str) -> str:
    """Return a configuration of the page whose listeners get free ports of the loopback."""
    text = configuration.replace('host = "0.0.0.0"\n', "").replace('port = "amqps"\n', "")
    text = text.replace("port = 9090\n", "")
    numbers = itertools.count()
    return re.sub(
        r"(?m)^\[\[listener\]\].*$",
        lambda head: f'{head[0]}\nport = 0\nname = "listener-{next(numbers)}"',
        text,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the certificates of the page's commands."""
    place = tmp_path_factory.mktemp("security")
    commands = blocks("A private certificate authority in two minutes")[0]
    assert "openssl" in commands
    subprocess.run(
        ["sh", "-e", "-c", commands], cwd=place, check=True, capture_output=True, timeout=PATIENCE_S
    )
    return place


def commands_of(section: list[str], router: RouterProcess, folder: Path) -> Iterator[list[str]]:
    """Yield the arguments of the page's `trioute` commands, for a router of this test."""
    for block in "\n\n".join(section).split("\n\n"):
        if block.startswith("trioute "):
            host = f"localhost:{router.port}"
            words = shlex.split(block.replace("router-1.example", host).replace("\\\n", " "))
            files = [str(folder / each) if each.endswith((".pem", ".key")) else each
                     for each in words]  # fmt: skip
            yield files[1:]


def exchange(router: RouterProcess, section: list[str], folder: Path) -> tuple[Ended, Ended]:
    """Receive and send as the page says, and return how both ended."""
    receiving, sending = commands_of(section, router, folder)
    assert (receiving[0], sending[0]) == ("receive", "send")
    with Command(*receiving) as command:
        sent = run(*sending)
        return command.end(), sent


@pytest.mark.parametrize("which", ["short", "checklist"])
def test_the_private_authority(folder: Path, proton: ProtonPeers, which: str) -> None:
    section = blocks("A private certificate authority in two minutes")
    short, checklist = (each for each in section if "[[listener]]" in each)
    profile = short.partition("[[listener]]")[0]
    configuration = short if which == "short" else profile + checklist
    with running_router(folder, with_free_ports(configuration)) as router:
        received, sent = exchange(router, section, folder)
        assert (received.code, sent.code) == (0, 0), (received, sent)
        assert "hello" in received.output
        if which == "short":
            return
        # operators on this host manage the router, and nothing else
        operators = router.url(listener=1)
        assert run("stat", "-b", operators).code == 0
        connection = proton.connect(operators)
        for link in (connection.sender("orders"), connection.receiver("orders")):
            link.until_over()
            assert link.condition is not None
            assert link.condition.name == "amqp:unauthorized-access"
        # clients do not manage it
        receiving, _ = commands_of(section, router, folder)
        tls = receiving[-6:]
        assert run("stat", "-b", f"amqps://localhost:{router.port}", *tls).code != 0
        assert router.http_addresses


def test_the_checklist_s_policy_has_no_warnings(folder: Path) -> None:
    section = blocks("A private certificate authority in two minutes")
    short, checklist = (each for each in section if "[[listener]]" in each)
    file = folder / "whole.toml"
    file.write_text(short.partition("[[listener]]")[0] + checklist, encoding="utf-8")
    assert run("check", file).code == 0
    asked = ("--as", "CN=alice", "--vhost", "clients")
    tried = run("policy", "test", "--strict", file)
    assert tried.code == 0, tried.output
    for question in (("send", "orders"), ("receive", "orders"), ("send", "$management")):
        allowed = question[1] == "orders"
        assert run("policy", "test", file, *asked, *question).code == (0 if allowed else 1)


def test_certificates_by_acme(folder: Path, tmp_path: Path, proton: ProtonPeers) -> None:
    script, commands, configuration = blocks("Certificates by ACME")
    assert "--deploy-hook /usr/local/sbin/trioute-certificate" in commands
    # certbot keeps both in a folder that it names
    lineage = tmp_path / "lineage"
    lineage.mkdir()
    for name, file in (("fullchain.pem", "router-1.pem"), ("privkey.pem", "router-1.key")):
        (lineage / name).write_bytes((folder / file).read_bytes())
    group = subprocess.run(["id", "-gn"], check=True, capture_output=True, text=True).stdout.strip()
    place = tmp_path / "tls"
    shown = script.replace("-g trioute", f"-g {group}").replace("/etc/trioute/tls", str(place))
    hook = tmp_path / "hook"
    hook.write_text(shown, encoding="utf-8")
    hook.chmod(0o755)
    for _ in range(2):
        subprocess.run([hook], check=True, timeout=PATIENCE_S, env={
            "RENEWED_LINEAGE": str(lineage), "PATH": "/usr/bin:/bin"
        })  # fmt: skip
    assert (place / "privkey.pem").stat().st_mode & 0o777 == 0o640
    users = tmp_path / "users"
    assert run("user", "add", users, "ann", "--stdin", stdin=b"pa55\n").code == 0
    text = configuration.replace("/etc/trioute/tls", str(place)).replace('"users"', f'"{users}"')
    with running_router(tmp_path / "router", with_free_ports(text)) as router:
        url = router.url("orders", user="ann:pa55", scheme="amqps")
        trust = ("--ssl-trustfile", folder / "ca.pem")
        with Command("receive", url, "--count", "1", *trust) as command:
            assert run("send", url, "--body", "hello", *trust).code == 0
            assert command.end().code == 0
