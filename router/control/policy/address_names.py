"""Sets of addresses that a policy allows, by name or by pattern, for each user.

An entry is an address, or a prefix followed by `*`, which may be empty. A pattern is matched token
by token. `${user}` stands for the name of the peer's user; a character in that name is never a
wildcard.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from router.config.policy_kinds import USER_TOKEN
from router.core.addresses.table import address_name
from router.core.model.patterns import PatternTree

WILDCARD: Final = "*"
_SEPARATORS: Final = "./"


class AddressNames:
    """Set of addresses, given by entries (`names`) and by `patterns`.

    A look-up takes time in proportion to the length of the name, to the number of entries with
    `${user}`, and to the number of different lengths of prefixes, not to the number of entries.
    """

    def __init__(self, names: Iterable[str] = (), patterns: Iterable[str] = ()) -> None:
        # entries without `${user}`, by address or by prefix
        self._exact: dict[str, str] = {}
        self._prefixes: dict[str, str] = {}
        # the lengths of these prefixes, in ascending order
        self._lengths: list[int] = []
        # entries with `${user}`: the text before and after it, whether `*` follows, the entry
        self._by_user: list[tuple[str, str, bool, str]] = []
        self._patterns: PatternTree[str] = PatternTree()
        # patterns that begin or end with `${user}`, which is a token of them
        self._user_first: PatternTree[str] = PatternTree()
        self._user_last: PatternTree[str] = PatternTree()
        for entry in names:
            self._add_name(entry)
        self._lengths = sorted({len(prefix) for prefix in self._prefixes})
        for pattern in patterns:
            self._add_pattern(pattern)

    def _add_name(self, entry: str) -> None:
        is_prefix = entry.endswith(WILDCARD)
        text = entry[: -len(WILDCARD)].lstrip("/") if is_prefix else address_name(entry)
        if USER_TOKEN in text:
            before, _, after = text.partition(USER_TOKEN)
            self._by_user.append((before, after, is_prefix, entry))
        elif is_prefix:
            self._prefixes[text] = entry
        else:
            self._exact[text] = entry

    def _add_pattern(self, pattern: str) -> None:
        if pattern.startswith(USER_TOKEN):
            self._user_first.add(pattern, pattern)
        elif pattern.endswith(USER_TOKEN):
            self._user_last.add(pattern, pattern)
        else:
            self._patterns.add(pattern, pattern)

    def entry_for(self, name: str, user: str) -> str | None:
        """Return the entry or pattern that allows a user the address `name`; None if none does.

        The empty name is in no set.
        """
        if not name:
            return None
        found = self._exact.get(name)
        if found is None:
            # try only the lengths of the prefixes: a peer may ask for a very long name
            cut = (name[:length] for length in self._lengths if length <= len(name))
            found = next((e for text in cut if (e := self._prefixes.get(text))), None)
        if found is None and self._by_user and user:
            found = self._entry_of(name, user)
        if found is None:
            found = self._patterns.match(name)
        return found if found is not None or not user else self._pattern_of(name, user)

    def _entry_of(self, name: str, user: str) -> str | None:
        for before, after, is_prefix, entry in self._by_user:
            text = f"{before}{user}{after}"
            matches = name.startswith(text) if is_prefix else name == text
            if matches:
                return entry
        return None

    def _pattern_of(self, name: str, user: str) -> str | None:
        """Return the pattern with `${user}` that allows a user a name.

        The user's name must make up one or more whole tokens of the name.
        """
        if name.startswith(user) and name[len(user) : len(user) + 1] in ("", *_SEPARATORS):
            found = self._user_first.match(USER_TOKEN + name[len(user) :])
            if found is not None:
                return found
        if name.endswith(user) and name[: -len(user)].endswith(tuple(_SEPARATORS)):
            return self._user_last.match(name[: -len(user)] + USER_TOKEN)
        return None
