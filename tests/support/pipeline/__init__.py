"""Telemetry of synthetic networks, with the results that jobs must find in it."""
