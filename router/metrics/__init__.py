"""Metrics for operators: their values, their exposition as text, and the HTTP server."""
