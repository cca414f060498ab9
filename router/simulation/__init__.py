"""Simulate many routers in one process: in-memory connections, virtual clock, seeded chance."""
