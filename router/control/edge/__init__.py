"""Edge routers and their uplinks: what both ends of such a connection do for it."""
