"""Claims of a tenant's clients: which security tokens are meant for the tenant.

Clients of several tenants may put tokens that are signed with the same keys. So a token must say
for which tenant it is: by the host in each of its audiences, or by its key, which the configuration
may bind to a virtual host.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import attrs

from router.core.addresses.claims import (
    Grant,
    TokenRefused,
    VerifiedToken,
    covering_paths,
    host_in,
    path_in,
)

UNAUTHORIZED: Final = 401
# How many characters of a tenant's name an error shows.
_MOST_SHOWN: Final = 255


@attrs.frozen
class TenantClaims:
    """Limit of the tokens of one connection to those for its peer's tenant.

    `vhost` is the name of the tenant's virtual host, and `is_named_by` returns whether a host name
    is that of it, or of one of its aliases. With `is_fixed` the listener has set the virtual host,
    and not the peer: then the hosts in audiences do not matter if the key is bound.
    """

    vhost: str
    is_named_by: Callable[[str], bool] = attrs.field(repr=False)
    is_fixed: bool = False

    def restricted(self, token: VerifiedToken, audience: str | None) -> VerifiedToken:
        """Return the part of a token that is for the tenant.

        It has to cover the `audience`, if there is one. Raises TokenRefused if nothing of the token
        is for the tenant.
        """
        is_bound = self._is_bound(token)
        matters = not (is_bound and self.is_fixed)
        if matters and audience is not None and not self._is_here(host_in(audience)):
            raise self._refusal("the audience (name) has another host")
        grants = [each for each in token.grants if not matters or self._is_here(each.host)]
        if not grants:
            raise self._refusal("the token is for another host")
        grants = [each for each in grants if is_bound or each.host]
        if not grants:
            raise self._refusal("the token names no host, and its key is bound to no vhost")
        if audience is not None:
            paths = set(covering_paths(path_in(audience)))
            if not any(each.path in paths for each in grants):
                raise self._refusal("the token does not cover the audience (name) here")
        return attrs.evolve(token, grants=tuple(Grant(each.path, each.rights) for each in grants))

    def check_login(self, token: VerifiedToken) -> None:
        """Raise TokenRefused unless a peer may log in with the key of a token."""
        if not self._is_bound(token):
            raise self._refusal("the shared access key is bound to no vhost")

    def _is_bound(self, token: VerifiedToken) -> bool:
        """Return whether a token's key is bound to the tenant; raise TokenRefused if to another."""
        if token.vhost is None:
            return False
        if not self.is_named_by(token.vhost):
            raise self._refusal("the key is for another vhost")
        return True

    def _is_here(self, host: str) -> bool:
        return not host or self.is_named_by(host)

    def _refusal(self, reason: str) -> TokenRefused:
        whose = f"this connection belongs to the vhost {self.vhost[:_MOST_SHOWN]}"
        return TokenRefused(UNAUTHORIZED, f"{reason}; {whose}")
