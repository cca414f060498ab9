"""Dispatch's configuration files: read, reported on, run and converted."""
