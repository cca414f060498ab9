"""Advice on the costs of connections between routers, from measurements on them."""
