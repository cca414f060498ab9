"""Metrics for operators: the numbers, how they are exposed, and the HTTP server for them."""
