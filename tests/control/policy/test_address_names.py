"""Addresses that a policy allows, compared with a model that tries every entry."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, strategies as st

from router.config.policy_kinds import USER_TOKEN
from router.control.policy.address_names import AddressNames

from support.examples import examples

WORDS = st.sampled_from(["a", "b", "ab", "ada", "*", "#", "", "$x", "${user}", "q"])
SEPARATORS = st.sampled_from(["/", "."])
USERS = st.sampled_from(["ada", "a", "a/b", "a.b", "*", "#", "", "${user}", "q/"])


@st.composite
def texts(draw: st.DrawFn, *, has_user: bool = False) -> str:
    """Return a text of a few words, some of which look like wildcards."""
    words = draw(st.lists(WORDS, min_size=1, max_size=4))
    if not has_user:
        words = [word for word in words if word != USER_TOKEN] or ["a"]
    text = words[0]
    for word in words[1:]:
        text += draw(SEPARATORS) + word
    return text


def allows_name(entry: str, name: str, user: str) -> bool:
    """Return whether an entry allows a name, by the words of the documentation."""
    if USER_TOKEN in entry:
        if not user:
            return False
        entry = entry.replace(USER_TOKEN, "\0", 1)
    is_open = entry.endswith("*")
    entry = entry[:-1].lstrip("/") if is_open else entry.lstrip("/").rstrip("/.")
    entry = entry.replace("\0", user)
    return name.startswith(entry) if is_open else name == entry


@given(
    st.lists(texts(has_user=True).filter(lambda each: each.count(USER_TOKEN) <= 1), max_size=5),
    texts(has_user=True),
    USERS,
)
@examples(300)
def test_names_are_those_of_the_model(entries: list[str], name: str, user: str) -> None:
    found = AddressNames(entries).entry_for(name, user)
    expected = [each for each in entries if allows_name(each, name, user)] if name else []
    assert (found is None) is not bool(expected)
    assert found is None or found in expected


def tokens_of(text: str) -> list[str]:
    return re.split(r"[./]", text.strip("./"))


def fits(pattern: list[str], name: list[str]) -> bool:
    """Return whether the tokens of a pattern match those of a name."""
    if not pattern:
        return not name
    if pattern[0] == "#":
        return any(fits(pattern[1:], name[at:]) for at in range(len(name) + 1))
    return bool(name) and pattern[0] in ("*", name[0]) and fits(pattern[1:], name[1:])


@given(st.lists(texts(), max_size=5), texts(), USERS)
@examples(300)
def test_patterns_are_those_of_the_model(patterns: list[str], name: str, user: str) -> None:
    found = AddressNames((), patterns).entry_for(name, user)
    is_any = any(fits(tokens_of(each), tokens_of(name)) for each in patterns)
    assert (found is not None) is (is_any and bool(name))


@pytest.mark.parametrize(
    ("pattern", "user", "allowed", "refused"),
    [
        ("${user}/#", "ada", ["ada", "ada/q", "ada.q", "ada/q/r"], ["adam/q", "q/ada", "*/q", "a"]),
        ("${user}.*", "ada", ["ada/q", "ada.q"], ["ada", "ada/q/r", "bob/q"]),
        ("#/${user}", "ada", ["q/ada", "q/r/ada", "q.ada"], ["ada/q", "xada", "q/xada"]),
        ("q/${user}", "ada", ["q/ada", "q.ada"], ["q/*", "q/bob", "r/ada", "q/r/ada"]),
        ("${user}", "ada", ["ada"], ["ada/q", "bob", "*", "#"]),
        # what a user's name contains is no wildcard
        ("${user}/q", "*", ["*/q"], ["ada/q"]),
        ("${user}/q", "#", ["#/q"], ["ada/q", "q", "a/b/q"]),
        ("q/${user}", "#", ["q/#"], ["q/ada", "q"]),
        ("q/${user}", "${user}", ["q/${user}"], ["q/ada"]),
        ("${user}/q", "a.b", ["a.b/q"], ["a/b/q", "a/q"]),
        # nobody has the name of an unknown user
        ("${user}/q", "", [], ["/q", "q", "${user}/q"]),
    ],
)
def test_patterns_with_the_users_name(
    pattern: str, user: str, allowed: list[str], refused: list[str]
) -> None:
    names = AddressNames((), [pattern])
    assert [each for each in allowed if names.entry_for(each, user) != pattern] == []
    assert [each for each in refused if names.entry_for(each, user) is not None] == []


@pytest.mark.parametrize("entries", [(), ("*",), ("q",)])
def test_the_empty_name_is_in_no_set(entries: tuple[str, ...]) -> None:
    assert AddressNames(entries, ("#",)).entry_for("", "ada") is None


@pytest.mark.parametrize("entry", ["q", "/q", "q/", "amqp://h/q", "amqp:q"])
def test_entries_are_written_like_addresses(entry: str) -> None:
    assert AddressNames([entry]).entry_for("q", "ada") == entry


class Counted(str):
    """Text that counts how many parts of it are copied."""

    __slots__ = ()
    copied = 0

    def __getitem__(self, key: Any) -> str:
        Counted.copied += 1
        return super().__getitem__(key)


@pytest.mark.parametrize("entry", ["a*", "*", "a${user}*", "a"])
def test_a_very_long_name_is_not_cut_at_each_of_its_characters(entry: str) -> None:
    names = AddressNames([entry, "x" * 500 + "*", "abc*"])
    Counted.copied = 0
    names.entry_for(Counted("b" * 100_000), "ada")
    assert Counted.copied <= 3
