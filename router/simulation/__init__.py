"""Many routers in one process: in-memory connections, a virtual clock, chance by seed."""
