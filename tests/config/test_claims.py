"""Settings of claims and shared access keys."""

from __future__ import annotations

from pathlib import Path

from router.config.claims import ClaimsSettings, SharedAccessKeySettings
from router.config.load import load_file, parse_configuration
from router.config.secret import Secret

TEXT = """
[[sharedAccessKey]]
name = "root"
keyName = "RootManageSharedAccessKey"
key = "file:key.txt"
secondaryKey = "env:OTHER"
rights = ["Send"]

[[claims]]
name = "c"
sharedAccessKeys = "root"
jwksFile = "keys.json"
audiences = ["a"]
"""


def test_defaults() -> None:
    claims = ClaimsSettings(name="c")
    assert not any(each.startswith("HS") for each in claims.algorithms)
    assert (claims.leeway_seconds, claims.token_timeout_seconds) == (60.0, 20.0)
    assert claims.required_of == "anonymous"
    assert not claims.accepts_jwt
    key = SharedAccessKeySettings(name="k")
    assert (key.name_in_tokens, key.rights) == ("k", ("Send", "Listen", "Manage"))


def test_a_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "router.toml"
    file.write_text(TEXT)
    configuration = load_file(file).configuration
    [key], [claims] = configuration.shared_access_keys, configuration.claims
    assert key.key == Secret("file", str(tmp_path / "key.txt"))
    assert claims.jwks_file == tmp_path / "keys.json"
    assert claims.accepts_jwt


def test_no_key_is_shown() -> None:
    text = TEXT.replace("file:key.txt", "literal:very-secret")
    assert "very-secret" not in repr(parse_configuration(text, source="f"))
