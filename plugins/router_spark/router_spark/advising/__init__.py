"""Advice on the costs of connections between routers, based on measurements."""
