"""Use of rhea as a peer: a Node process, `tests/interop/peer.js`, that exchanges JSON lines."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import threading
from pathlib import Path
from typing import IO, Any

from support.missing_peers import skip_without
from support.proton_peers import ProtonPeers

FOLDER = Path(__file__).resolve().parents[1] / "interop"


def require_rhea() -> str:
    """Return the path of Node; skip without it or rhea.

    Fail instead where `TRIOUTE_REQUIRE_INTEROP=1`.
    """
    node = shutil.which("node")
    missing = "Node" if node is None else "rhea (run `make interop`)"
    if node is None or not (FOLDER / "node_modules" / "rhea").is_dir():
        skip_without(
            f"{missing} IS MISSING: rhea, one of the two clients of these tests, does not take part"
        )
    return node


class RheaPeer:
    """Node process with rhea in it. All that it tells is in `events`, in order."""

    def __init__(self, peers: ProtonPeers) -> None:
        self.peers = peers
        self.events: list[dict[str, Any]] = []
        self.process = subprocess.Popen(
            [require_rhea(), FOLDER / "peer.js"],
            cwd=FOLDER,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.complaints: list[str] = []
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self._threads = [
            threading.Thread(target=self._listen, args=[self.process.stdout]),
            threading.Thread(target=self._complain, args=[self.process.stderr]),
        ]
        for thread in self._threads:
            thread.start()
        self.wait("ready")

    def _listen(self, stdout: IO[str]) -> None:
        for line in stdout:
            self.events.append(json.loads(line))
            self.peers.wake()

    def _complain(self, stderr: IO[str]) -> None:
        for line in stderr:
            self.complaints.append(line)

    def tell(self, what: str, **fields: Any) -> None:
        """Give a command."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"do": what, **fields}) + "\n")
        self.process.stdin.flush()

    def find(self, event: str, **facts: Any) -> list[dict[str, Any]]:
        """Return the events of a kind so far for which all `facts` are true."""
        return [
            each
            for each in list(self.events)
            if each["event"] == event and facts.items() <= each.items()
        ]

    def wait(self, event: str, count: int = 1, **facts: Any) -> list[dict[str, Any]]:
        """Wait until an event has come `count` times, and return all of these events."""
        self.peers.until(
            lambda: len(self.find(event, **facts)) >= count or self.process.poll() is not None,
            f"rhea tells {count} times of {event} {facts}",
        )
        found = self.find(event, **facts)
        assert len(found) >= count, f"rhea ended:\n{''.join(self.complaints)}"
        return found

    def connect(self, port: int, name: str = "connection", **options: Any) -> None:
        """Connect, and wait until the connection is open."""
        self.tell("connect", connection=name, options={"port": port, **options})
        self.wait("connection_open", connection=name)

    def resume(
        self,
        what: str,
        address: str,
        of: str,
        unsettled: dict[int, str | None],
        *,
        connection: str,
        link: str = "resumed",
        **options: Any,
    ) -> dict[str, Any]:
        """Attach a link anew, "sender" or "receiver", and return the event of its answer.

        `of` is the old link; `unsettled` has the numbers of its deliveries for our unsettled map,
        with the outcome of each ("accepted") or None.
        """
        key = "target" if what == "sender" else "source"
        options = {"name": of, key: {"address": address, **options.pop(key, {})}, **options}
        fields = {"of": of, "unsettled": unsettled, "options": options}
        self.tell(what, connection=connection, link=link, **fields)
        return self.wait(f"{what}_open", link=link)[0]

    def sender(
        self, address: Any, name: str = "sender", connection: str = "connection", **options: Any
    ) -> str:
        """Attach a sender, wait until it is attached, and return its name."""
        target = {"address": address} if isinstance(address, str) else address
        self.tell("sender", connection=connection, link=name, options={"target": target, **options})
        self.wait("sender_open", link=name)
        return name

    def receiver(
        self, address: Any, name: str = "receiver", connection: str = "connection", **options: Any
    ) -> str:
        """Attach a receiver, wait until it is attached, and return its name."""
        source = {"address": address} if isinstance(address, str) else address
        self.tell(
            "receiver", connection=connection, link=name, options={"source": source, **options}
        )
        self.wait("receiver_open", link=name)
        return name

    def send(self, octets: bytes, link: str = "sender", **fields: Any) -> None:
        """Send the octets of a message."""
        self.tell("send", link=link, octets=base64.b64encode(octets).decode(), **fields)

    def messages(self, count: int, link: str = "receiver") -> list[bytes]:
        """Wait for `count` messages, and return the octets of all that came."""
        return [base64.b64decode(each["octets"]) for each in self.wait("message", count, link=link)]

    def kill(self) -> None:
        """End the process as a crash would."""
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        """End the process, if it still runs."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.kill()
        for thread in self._threads:
            thread.join()
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()
