"""Errors before or during a job, reported in one line."""

from __future__ import annotations

import click


class BadInput(click.ClickException):
    """Error about invalid arguments or files; the exit code is 2."""

    exit_code = 2


class JobFailed(click.ClickException):
    """Error about a job that Spark could not finish; the exit code is 1."""

    exit_code = 1
