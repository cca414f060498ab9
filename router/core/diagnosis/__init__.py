"""Reasons why messages do not flow: blocked links, stuck receivers and stuck deliveries.

This package may read all of `router.core`. It changes nothing, except that it detaches stuck
receivers.
"""
