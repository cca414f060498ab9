"""Benchmark of rare operations: their cost, and their longest turn: ``make costs``."""
