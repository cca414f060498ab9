"""Checks of a configuration that need more than its values: what is sent, and files of keys."""

from __future__ import annotations

from typing import Final

from router.config.checks import Check
from router.net.claims.checking import find_unusable_claims
from router.net.first_frames import find_too_long
from router.net.tls.checking import find_unusable_profiles

EXTRA_CHECKS: Final[tuple[Check, ...]] = (
    find_too_long,
    find_unusable_profiles,
    find_unusable_claims,
)
