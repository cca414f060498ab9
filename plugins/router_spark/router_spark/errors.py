"""Errors before or during a job, reported in one line."""

from __future__ import annotations

import click


class BadInput(click.ClickException):
    """Invalid arguments or files: exit code 2."""

    exit_code = 2


class JobFailed(click.ClickException):
    """Failure of Spark to finish a job: exit code 1."""

    exit_code = 1
