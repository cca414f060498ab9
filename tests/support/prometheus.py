"""Prometheus from Debian's package: its promtool, and a server that scrapes within a test.

Without it tests skip with a clear message, or fail where `TRIOUTE_REQUIRE_INTEROP=1` requires it.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.missing_peers import skip_without

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "deploy/prometheus/trioute-alerts.yml"
DASHBOARD = ROOT / "deploy/prometheus/trioute-dashboard.json"
# where `make prometheus` unpacks it
UNPACKED = ROOT / ".prometheus/usr/bin"
SCRAPE_S = 0.4
PATIENCE_S = 60.0
_READY = "Server is ready to receive web requests"
_LISTENING = re.compile(r'msg="Listening on" address=(\S+):(\d+)')


def program(name: str) -> str:
    """Return the path of `prometheus` or `promtool`; skip or fail the test without it."""
    path = shutil.which(name) or shutil.which(name, path=str(UNPACKED))
    if path is None:
        skip_without(
            f"{name} IS MISSING (run `make prometheus`): rules and dashboard are not tried with it"
        )
    return path


def promtool(*arguments: str | Path) -> str:
    """Return the output of promtool; fail the test if promtool fails."""
    done = _promtool(*arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def complaints(metrics: str) -> list[str]:
    """Return promtool's complaints about names and types of metrics in the text format."""
    return _promtool("check", "metrics", given=metrics).stderr.splitlines()


def _promtool(*arguments: str | Path, given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program("promtool"), *map(str, arguments)],
        input=given,
        capture_output=True,
        text=True,
        timeout=60,
    )


def hasty(rules: str, window: str) -> str:
    """Return the rules for a test that has no minutes: no `for` durations, short ranges."""
    at_once = re.sub(r"for: \d+\w", "for: 0s", rules)
    return re.sub(r"\[\d+m\]", f"[{window}]", at_once)


class Prometheus:
    """Running server, and queries by its HTTP API."""

    def __init__(self, port: int) -> None:
        self.port = port

    def get(self, path: str, **fields: str) -> Any:
        """Return the data of an answer; raise AssertionError with its text if it is an error."""
        query = urllib.parse.urlencode(fields)
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{query}"
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE_S) as response:
                answer = json.load(response)
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{fields}: {error.read().decode()}") from error
        assert answer["status"] == "success", answer
        return answer["data"]

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Return the series that an expression gives now."""
        found: list[dict[str, Any]] = self.get("query", query=expression)["result"]
        return found

    def firing(self) -> set[str]:
        """Return the alerts that fire now."""
        alerts = self.get("alerts")["alerts"]
        return {each["labels"]["alertname"] for each in alerts if each["state"] == "firing"}


@contextmanager
def running_prometheus(folder: Path, targets: list[str], rules: str) -> Iterator[Prometheus]:
    """Run a Prometheus that scrapes these targets and looks at these rules until the block ends."""
    rule_file = folder / "rules.yml"
    rule_file.write_text(rules, encoding="utf-8")
    configuration = {
        "global": {"scrape_interval": f"{SCRAPE_S:g}s", "evaluation_interval": f"{SCRAPE_S:g}s"},
        "rule_files": [str(rule_file)],
        "scrape_configs": [{"job_name": "trioute", "static_configs": [{"targets": targets}]}],
    }
    file = folder / "prometheus.yml"
    # what is JSON is YAML, too; and no duration of it may be below a millisecond
    text = json.dumps(configuration).replace(f'"{SCRAPE_S:g}s"', f'"{SCRAPE_S * 1000:g}ms"')
    file.write_text(text, encoding="utf-8")
    process = subprocess.Popen(
        [
            program("prometheus"),
            f"--config.file={file}",
            f"--storage.tsdb.path={folder / 'data'}",
            "--web.listen-address=127.0.0.1:0",
        ],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    said: list[str] = []
    reader: threading.Thread | None = None
    try:
        port = _port_of(process, said)
        reader = threading.Thread(target=lambda: said.extend(process.stderr or ()))
        reader.start()
        yield Prometheus(port)
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if reader is not None:
            reader.join()
        if process.stderr is not None:
            process.stderr.close()


def _port_of(process: subprocess.Popen[str], said: list[str]) -> int:
    assert process.stderr is not None
    port = 0
    for line in process.stderr:
        said.append(line)
        found = _LISTENING.search(line)
        if found:
            port = int(found[2])
        # before that it answers that it is not
        if _READY in line:
            assert port, "".join(said)
            return port
    raise AssertionError(f"Prometheus ended:\n{''.join(said)}")
