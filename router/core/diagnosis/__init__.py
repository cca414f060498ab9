"""Reasons why messages do not flow: blocked links, stuck receivers and deliveries.

Reads all of `router.core` and changes nothing but the links of stuck receivers.
"""
