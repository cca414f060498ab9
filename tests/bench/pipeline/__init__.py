"""Benchmark of the data pipeline on two cores, with checks of its answers."""
