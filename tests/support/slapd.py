"""OpenLDAP's server as a peer, on a free port of the loopback address, with a few entries."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.missing_peers import skip_without
from support.ports import free_port

PATIENCE_S = 20.0
CONFIGURATION = """\
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
pidfile {folder}/pid
argsfile {folder}/args
{tls}
database mdb
suffix dc=example
directory {folder}/data
access to attrs=userPassword by anonymous auth by * none
access to * by users read by * none
"""
"""Anonymous clients may bind, and nothing else."""


@contextmanager
def slapd(folder: Path, entries: str, certificate: Path | None = None) -> Iterator[str]:
    """Run the server with these entries in LDIF; yield its URL, ldaps with a certificate."""
    program = shutil.which("slapd") or shutil.which("slapd", path="/usr/sbin")
    adder = shutil.which("slapadd") or shutil.which("slapadd", path="/usr/sbin")
    if program is None or adder is None:
        skip_without("SLAPD IS MISSING (run `make interop`): it does not take part")
    (folder / "data").mkdir()
    tls = ""
    if certificate is not None:
        tls = f"TLSCertificateFile {certificate}\nTLSCertificateKeyFile {certificate}\n"
    configuration = folder / "slapd.conf"
    configuration.write_text(CONFIGURATION.format(folder=folder, tls=tls), encoding="utf-8")
    subprocess.run(
        [adder, "-f", str(configuration)],
        input=entries,
        text=True,
        check=True,
        capture_output=True,
        timeout=PATIENCE_S,
    )
    port = free_port()
    url = f"{'ldap' if certificate is None else 'ldaps'}://127.0.0.1:{port}"
    # with -d it stays in the foreground
    process = subprocess.Popen(
        [program, "-f", str(configuration), "-h", f"{url}/", "-d", "0"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _until_listening(port, process)
        yield url
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def _until_listening(port: int, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        assert process.poll() is None, "slapd has ended"
        with socket.socket() as sock:
            if sock.connect_ex(("127.0.0.1", port)) == 0:
                return
        with contextlib.suppress(subprocess.TimeoutExpired):
            # a moment, unless it has ended
            process.wait(0.02)
    raise AssertionError("slapd does not listen")
