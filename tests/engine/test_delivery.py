"""A delivery begins with every field at its default, on both builds."""

from __future__ import annotations

from router.engine.delivery import DEFAULTS, Delivery


def test_a_new_delivery_is_blank() -> None:
    for delivery in (Delivery.__new__(Delivery), Delivery()):
        for name, default in DEFAULTS.items():
            assert getattr(delivery, name) == default, name


def test_a_delivery_shares_nothing_with_another() -> None:
    one, other = Delivery.__new__(Delivery), Delivery.__new__(Delivery)
    one.size = 5
    one.chunks = [b"x"]
    assert (other.size, other.chunks) == (0, None)
