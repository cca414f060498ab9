"""A web browser without a window: Chromium, with pages of a server in the test's process."""

from __future__ import annotations

import http.server
import json
import queue
import shutil
import subprocess
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlencode

from support.missing_peers import skip_without
from support.process_trees import descendants, kill
from support.rhea_peers import FOLDER, require_rhea

PATIENCE_S = 60.0
NAMES = ("chromium", "chromium-browser", "google-chrome")
_FILES = {
    "/browser.html": (FOLDER / "browser.html", "text/html"),
    "/rhea-umd.js": (FOLDER / "node_modules/rhea/dist/rhea-umd.js", "text/javascript"),
}


def require_browser() -> str:
    """Return the path of Chromium; skip without it, or fail where `TRIOUTE_REQUIRE_INTEROP=1`."""
    require_rhea()
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        skip_without(
            "CHROMIUM IS MISSING (on Debian: apt-get install chromium): no browser takes part"
        )
    return found


class Browser:
    """Chromium that shows `tests/interop/browser.html`, and the server of that page."""

    def __init__(self, folder: Path) -> None:
        self._program = require_browser()
        self._folder = folder
        self._results: queue.Queue[dict[str, Any]] = queue.Queue()
        self._processes: list[subprocess.Popen[bytes]] = []
        results = self._results

        class Pages(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                found = _FILES.get(self.path.partition("?")[0])
                if found is None:
                    self.send_error(404)
                    return
                octets = found[0].read_bytes()
                self.send_response(200)
                self.send_header("content-type", found[1])
                self.send_header("content-length", str(len(octets)))
                self.end_headers()
                self.wfile.write(octets)

            def do_POST(self) -> None:
                size = int(self.headers["content-length"])
                results.put(json.loads(self.rfile.read(size)))
                self.send_response(204)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages)
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()
        self.origin = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for process in self._processes:
            for pid in (*descendants(process.pid), process.pid):
                kill(pid)
            process.wait()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def show(self, **query: Any) -> dict[str, Any]:
        """Show the page, and return what it reports."""
        command = [
            *(self._program, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"),
            *("--disable-dev-shm-usage", "--disable-background-networking"),
            f"--user-data-dir={self._folder / f'profile-{len(self._processes)}'}",
            f"{self.origin}/browser.html?{urlencode(query)}",
        ]
        self._processes.append(
            subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        )
        return self._results.get(timeout=PATIENCE_S)
