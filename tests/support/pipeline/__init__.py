"""Telemetry of made-up networks, with the answers that jobs must find in it."""
