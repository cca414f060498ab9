"""The command `causes` asks for two times that can be compared."""

from __future__ import annotations

import pytest
from click.testing import CliRunner
from router_spark.causes_command import causes_command

pytestmark = pytest.mark.spark

PERIOD = ["--from", "2026-01-02", "--to", "2026-01-03"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (PERIOD, "Missing option '--baseline-from'"),
        (["--baseline-from", "2026-01-01"], "--from and --to are required"),
        (["--baseline-from", "2026-01-02", *PERIOD], "must end by --from"),
        (
            ["--baseline-from", "2026-01-01", "--baseline-to", "2026-01-02T12:00", *PERIOD],
            "must end by --from",
        ),
        (["--baseline-from", "soon", *PERIOD], "--baseline-from soon: not a time in ISO 8601"),
    ],
)
def test_what_cannot_be_compared_is_told(options: list[str], words: str) -> None:
    result = CliRunner().invoke(causes_command, [".", *options])

    assert result.exit_code != 0
    assert words in result.output
