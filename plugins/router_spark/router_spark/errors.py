"""Errors before or during a job, reported in one line."""

from __future__ import annotations

import click


class BadInput(click.ClickException):
    """Arguments or files are invalid: exit code 2."""

    exit_code = 2


class JobFailed(click.ClickException):
    """Spark could not finish a job: exit code 1."""

    exit_code = 1
