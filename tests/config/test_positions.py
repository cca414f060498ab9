"""Lines of keys: the forms that TOML has, and that everything tomllib finds has a line."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator

import pytest
from hypothesis import given, strategies as st

from router.config.mistakes import Path
from router.config.positions import find_lines, line_of

DOCUMENT = '''\
# a comment with [brackets] and key = 1
top = "a # in a string"  # and one after it

[router]
id = 'a'  # 5
"quoted \\u0041" = 1
a . "b.c" = 2

[[listener]]
port = 1
saslMechanisms = [
  "PLAIN", # 12
  "ANONYMOUS",
]
text = """
[not a table]
"quoted" = 1 \\""" and "" more"""""
after = 1979-05-27 07:32:00  # 18

[[listener]]
port = 2
raw = \'\'\'
port = 3
\'\'\'\'
inline = { a = 1, b = [ { c = 2 } ] }

[listener.openProperties]
site = 1
[[listener.deep]]
x = 1
'''


def test_the_forms_of_toml() -> None:
    lines = find_lines(DOCUMENT)
    expected: dict[Path, int] = {
        ("top",): 2,
        ("router",): 4,
        ("router", "id"): 5,
        ("router", "quoted A"): 6,
        ("router", "a"): 7,
        ("router", "a", "b.c"): 7,
        ("listener",): 9,
        ("listener", 0): 9,
        ("listener", 0, "port"): 10,
        ("listener", 0, "saslMechanisms"): 11,
        ("listener", 0, "saslMechanisms", 0): 12,
        ("listener", 0, "saslMechanisms", 1): 13,
        ("listener", 0, "text"): 15,
        ("listener", 0, "after"): 18,
        ("listener", 1): 20,
        ("listener", 1, "port"): 21,
        ("listener", 1, "raw"): 22,
        ("listener", 1, "inline"): 25,
        ("listener", 1, "inline", "a"): 25,
        ("listener", 1, "inline", "b"): 25,
        ("listener", 1, "inline", "b", 0): 25,
        ("listener", 1, "inline", "b", 0, "c"): 25,
        ("listener", 1, "openProperties"): 27,
        ("listener", 1, "openProperties", "site"): 28,
        ("listener", 1, "deep"): 29,
        ("listener", 1, "deep", 0): 29,
        ("listener", 1, "deep", 0, "x"): 30,
    }
    assert lines == expected
    assert set(paths(tomllib.loads(DOCUMENT))) == set(expected)


def test_windows_line_ends_count_once() -> None:
    assert find_lines('a = """\r\n\r\n"""\r\nb = 1\r\n')[("b",)] == 4


def test_something_missing_is_where_what_it_is_missing_from_is() -> None:
    lines = find_lines("\n[a]\n")
    assert line_of(lines, ("a", "b", 3)) == 2
    assert line_of(lines, ("b",)) == 0


@pytest.mark.parametrize(
    "text", ["[a", "a", "a = [", "a = {b", "= 1", 'a = "', "a = [}]", "\0", '"\\1" = 1']
)
def test_what_is_not_toml_is_left_out(text: str) -> None:
    find_lines(text)


def paths(value: object, here: Path = ()) -> Iterator[Path]:
    """Yield the path of everything inside `value`."""
    if here:
        yield here
    if isinstance(value, dict):
        for key, item in value.items():
            yield from paths(item, (*here, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from paths(item, (*here, index))


quoted = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=4).map(
    lambda text: '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
)
keys = st.lists(st.sampled_from(["a", "b", "c-d", "'x.y'"]) | quoted, min_size=1, max_size=2).map(
    " . ".join
)
blanks = st.sampled_from(["", " ", "\n", " # [x]\n\t"])
scalars = st.sampled_from(
    ["1", "true", "-0x1f", "1e5", "1979-05-27 07:32:00", "'''\n'x\n'''''", '"""\n\\"""x""""', "''"]
)
values = st.recursive(
    scalars | quoted,
    lambda inner: (
        st.builds(
            lambda items, blank: "[" + ",".join(blank + item for item in items) + blank + "]",
            st.lists(inner, max_size=3),
            blanks,
        )
        | st.dictionaries(keys, inner, max_size=3).map(
            lambda items: "{" + ", ".join(f"{key} = {item}" for key, item in items.items()) + "}"
        )
    ),
    max_leaves=5,
)
statements = st.one_of(
    st.builds("{} = {}".format, keys, values),
    keys.map("[{}]".format),
    keys.map("[[ {} ]]".format),
    st.just("# x = 1"),
)


@given(st.lists(statements, max_size=6).map("\n".join))
def test_everything_in_a_valid_document_has_a_line(text: str) -> None:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    lines = find_lines(text)
    assert set(lines) == set(paths(data))
    assert all(1 <= line <= text.count("\n") + 1 for line in lines.values())


@given(st.text(st.sampled_from(list("ab =[]{}\"'#.,\n\\1")), max_size=40))
def test_no_text_stops_it(text: str) -> None:
    find_lines(text)
