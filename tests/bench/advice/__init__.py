"""Benchmark of repeated advice on costs."""
