"""Advice on the costs of connections between routers, from what was measured on them."""
