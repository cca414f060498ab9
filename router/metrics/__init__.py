"""Metrics for operators: the numbers, their exposition as text, and the HTTP server."""
