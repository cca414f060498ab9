"""Addresses whose receivers are at other routers: links to the next router on the way there."""
