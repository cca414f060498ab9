"""Fuzz targets around security tokens: SAS tokens, JWTs and their keys, and requests to `$cbs`.

What is accepted is checked a second time, by other code than the router's.
"""

from __future__ import annotations

import base64
import hmac
import json
import re
from functools import cache
from typing import Any
from urllib.parse import unquote_to_bytes

import attrs
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import (
    decode_dss_signature,
    encode_dss_signature,
)
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from router.amqp.message import AmqpValue, Data, Message, Properties, encode_message
from router.core.addresses.claims import (
    ANY,
    MOST_PATHS,
    TokenRefused,
    VerifiedToken,
    covering_paths,
    path_in,
)
from router.core.addresses.tenant_claims import TenantClaims
from router.core.links.cbs import CREDIT, TokenAccepted, TokenNotAccepted
from router.net.claims.jwt_tokens import (
    LEAST_SECRET_BYTES,
    LONGEST_PATH,
    MOST_GRANTS,
    JwtKey,
    JwtRules,
    KeyUnusable,
    algorithms_of,
    covers_audience,
    key_set,
    secret_key,
)
from router.net.claims.sas import PREFIX, SasKey, SasKeys

from support.in_memory import Router
from support.tokens import NOW, Claimant, hs256, sas, segment, unpadded

KEY = "the shared access key of the fuzzer"
SECRET = b"the secret for HMAC of the fuzzer"
LEEWAY_S = 60.0
AUDIENCE = "router"
# The name of a tenant.
HOST = "host"
# Between two parts of an input.
BETWEEN = b"\xfe\xfe"
MOST_REQUESTS = 40
# The algorithms that are allowed.
ALGORITHMS = frozenset({"HS256", "ES256", "RS256"})
_R_BYTES = 32  # of each number in a signature of ES256

_SAS_TEXT = re.compile(
    r"the SAS token is not signed with a key that is accepted here|"
    r"the signature \(sig\) of the SAS token is not base64|"
    r"the expiry \(se\) of the SAS token is not a number of seconds|"
    r"the SAS token has expired \(se\)|the audience \(sr\) of the SAS token is not an address|"
    r"the SAS token has (sr|sig|se|skn|a field) twice|"
    r"the SAS token lacks (sr|sig|se|skn)(, (sig|se|skn))*|"
    r"a field of the SAS token is not percent-encoded UTF-8"
)
_JWT_TEXT = re.compile(
    r"the JWT is malformed|the JWT's algorithm \(alg\) is none of ES256, HS256, RS256|"
    r"the JWT's header has extensions \(crit, b64\)|"
    r"the JWT is not signed with a key that is accepted here|"
    r"the JWT's claims are not a JSON object with unique names|"
    r"the JWT is for another audience \(aud\)|the JWT has no expiration time \(exp\)|"
    r"the JWT has expired \(exp\)|the JWT is not valid yet \(nbf, iat\)|"
    r"the JWT's claim (exp|nbf|iat) is not a number of seconds since 1970|"
    r"an address in the JWT's claim rights is too long or invalid|"
    r"an entry of the JWT's claim rights names no address|"
    r"the JWT's claim rights has over 256 addresses|the JWT's claim rights has an unknown right|"
    r"the JWT gives no right: its claim rights is missing or empty"
)
_KEY_TEXT = re.compile(
    r"(is not JSON|is not a JWK set: it has no list of keys|has more than 100 keys|"
    r"has no key for signatures)|has a key, number \d+, that (is of none of the kinds "
    r"RSA, EC, OKP, oct|has a kid that is not a string|cannot be read|"
    r"has an algorithm \(alg\) that is not of its kind|is a secret of less than 32 bytes|"
    r"is an RSA key of \d+ bits; 2048 to 8192 are allowed|"
    r"is an RSA key with an exponent that takes too long|"
    r"is not an RSA, EC \(P-256, P-384 or P-521\) or Ed25519 key)"
)
_TENANT_TEXT = re.compile(
    r"(the token is for another host|the token names no host, and its key is bound to no vhost|"
    r"the key is for another vhost); this connection belongs to the vhost host"
)
_NODE_TEXT = re.compile(
    r"the message is malformed|\$cbs has no such operation: it has put-token, delete-token and "
    r"set-token|the application property name must be the token's audience|"
    r"the application property (operation|name|type|token-type) (must be a string|is too long)|"
    r"the body must be a token: an amqp-value with a string|there is no token with this name|"
    r"the token is none of SAS tokens .*and JWTs \(amqp:jwt\)|"
    r"the token has more than 16384 characters|the token does not cover the audience \(name\)|"
    r"the token is of no accepted kind|the tokens would have more than 4096 paths"
)


# SAS tokens.


@cache
def sas_keys() -> SasKeys:
    """Return the keys that SAS tokens are verified with."""
    return SasKeys([SasKey("root", (KEY.encode(), b"secondary"), 7), SasKey("few", (b"few",), 1)])


_SAS_SECRETS = {"root": (KEY.encode(), b"secondary"), "few": (b"few",)}


def check_sas(token: str, verified: VerifiedToken) -> None:
    """Check that a SAS token that was accepted is signed, and gives what its key may."""
    fields = [part.split("=", 1) for part in token.removeprefix(PREFIX).split("&")]
    found = {each[0]: each[1] for each in fields if len(each) == 2}
    name = unquote_to_bytes(found["skn"]).decode()
    signature = base64.b64decode(unquote_to_bytes(found["sig"]))
    signed = f"{found['sr']}\n{found['se']}".encode()
    right = [hmac.new(each, signed, "sha256").digest() for each in _SAS_SECRETS[name]]
    assert signature in right, "accepted without a signature"
    assert 0 < verified.lifetime_s == int(found["se"]) + LEEWAY_S - NOW, "it has expired"
    [grant] = verified.grants
    assert grant.rights == (7 if name == "root" else 1)
    audience = unquote_to_bytes(found["sr"]).decode()
    _check_tenant(verified, [audience])
    assert grant.path in ("", path_in(audience))
    assert not grant.path.startswith("/")
    _check_covered(grant.path)


def _check_tenant(verified: VerifiedToken, audiences: list[str]) -> None:
    """Check that a token is valid for a tenant only as far as its audiences name the tenant."""
    hosts = [each.partition("://")[2].partition("/")[0] for each in audiences if "://" in each]
    tenant = TenantClaims(HOST, HOST.__eq__)
    try:
        restricted = tenant.restricted(verified, None)
    except TokenRefused as refused:
        _check_refusal(refused, _TENANT_TEXT)
        return
    assert HOST in hosts, "no audience names the tenant"
    assert len(restricted.grants) <= hosts.count(HOST)
    bound = attrs.evolve(verified, vhost="another")
    try:
        tenant.restricted(bound, None)
    except TokenRefused as refused:
        _check_refusal(refused, _TENANT_TEXT)
    else:
        raise AssertionError("the key is for another tenant")


def _check_covered(path: str) -> None:
    """Check that a path covers itself, and is its own path, if it is a usual address."""
    assert path_in(path) == path or "://" in path or path.lower().startswith("amqp"), path
    parts = path.split("/")
    if len(path) <= LONGEST_PATH and len(parts) <= 60 and not {"", ".", ".."} & set(parts):
        assert path in list(covering_paths(f"{path}/x"))


def sas_token(octets: bytes) -> None:
    """Verify a SAS token.

    With an odd first octet the rest is the token; otherwise it is an audience, an expiry and
    further fields, which are signed rightly.
    """
    first, rest = octets[:1] or b"\0", octets[1:]
    text = rest.decode("utf-8", "replace")
    if first[0] & 1:
        _verify_sas(text)
        return
    audience, _, after = text.partition("\n")
    expiry, _, more = after.partition("\n")
    made = sas(audience, key=KEY, name="root", expiry=expiry)
    _verify_sas(made + more)
    # as it is encoded here, instead of by a client
    signature = base64.b64encode(
        hmac.digest(KEY.encode(), f"{audience}\n{expiry}".encode(), "sha256")
    ).decode()
    _verify_sas(f"{PREFIX}sr={audience}&sig={signature}&se={expiry}&skn=root{more}")
    wrong = made.replace("sig=", f"sig={'B' if made[made.find('sig=') + 4] == 'A' else 'A'}", 1)
    assert _verify_sas(wrong) is None, "another signature"


def _verify_sas(token: str) -> VerifiedToken | None:
    try:
        verified = sas_keys().verify(token, NOW, LEEWAY_S)
    except TokenRefused as refused:
        _check_refusal(refused, _SAS_TEXT)
        return None
    check_sas(token, verified)
    return verified


def _check_refusal(refused: TokenRefused, texts: re.Pattern[str]) -> None:
    assert refused.status in (400, 401)
    assert texts.fullmatch(refused.description), "a text that may show the token"
    assert str(refused) == refused.description
    assert refused.__suppress_context__ or refused.__context__ is None


# JWTs, and their keys.


@cache
def ec_key() -> ec.EllipticCurvePrivateKey:
    """Return a private key, the same in each run."""
    return ec.derive_private_key(2**200 + 12345, ec.SECP256R1())


@cache
def jwt_rules() -> JwtRules:
    """Return the keys and rules that JWTs are verified with."""
    public = ec_key().public_key()
    keys = (secret_key(SECRET, "h"), JwtKey(public, algorithms_of(public), "e"))
    audiences = frozenset({AUDIENCE})
    return JwtRules(keys, ALGORITHMS, audiences, None, "rights", LEEWAY_S)


def check_jwt(token: str, verified: VerifiedToken) -> None:
    """Check that a JWT that was accepted is signed, is valid now, and gives a limited amount."""
    head, payload, signature = (each.encode() for each in token.split("."))
    header, claims = json.loads(_decoded(head)), json.loads(_decoded(payload))
    signed, signature = head + b"." + payload, _decoded(signature)
    if header["alg"] == "HS256":
        right = hmac.new(SECRET, signed, "sha256").digest()
        assert signature == right, "accepted without a signature"
    else:
        assert header["alg"] == "ES256", "no key is for this algorithm"
        r, s = signature[:_R_BYTES], signature[_R_BYTES:]
        der = encode_dss_signature(int.from_bytes(r, "big"), int.from_bytes(s, "big"))
        try:
            ec_key().public_key().verify(der, signed, ec.ECDSA(SHA256()))
        except InvalidSignature:
            raise AssertionError("accepted without a signature") from None
    assert 0 < verified.lifetime_s == claims["exp"] + LEEWAY_S - NOW, "it has expired"
    assert AUDIENCE in claims["aud"]
    assert 0 < len(verified.grants) <= MOST_GRANTS
    told = claims["rights"]
    listed = told.split() if isinstance(told, str) else list(told)
    _check_tenant(verified, listed if isinstance(told, dict) else [
        each.partition(":")[2] for each in listed if isinstance(each, str)
    ])  # fmt: skip
    for grant in verified.grants:
        assert 0 < grant.rights <= ANY
        assert len(grant.path) <= LONGEST_PATH
        assert grant.path or "*" in json.dumps(claims["rights"]), "all addresses, unasked"
        _check_covered(grant.path)


def _decoded(text: bytes) -> bytes:
    return base64.urlsafe_b64decode(text + b"=" * (-len(text) % 4))


def jwt(octets: bytes) -> None:
    """Verify a JWT, or read a JWK set.

    The first octet says whether the rest is the token, a JWK set, a payload that is signed rightly,
    or a header and a payload.
    """
    first, rest = octets[:1] or b"\0", octets[1:]
    kind = first[0] % 4
    if kind == 0:
        _verify_jwt(rest.decode("utf-8", "replace"))
    elif kind == 1:
        _read_keys(rest)
    else:
        header, _, payload = rest.partition(BETWEEN)
        if kind == 2:
            header, payload = b'{"alg":"HS256"}', rest
        signed = f"{unpadded(header)}.{unpadded(payload)}"
        digest = hmac.digest(SECRET, signed.encode(), "sha256")
        _verify_jwt(f"{signed}.{unpadded(digest)}")
        # a public key as a secret, another signature, and none
        public = ec_key().public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        for wrong in (hmac.digest(public, signed.encode(), "sha256"), digest[:-1], b""):
            assert _verify_jwt(f"{signed}.{unpadded(wrong)}") is None


def _verify_jwt(token: str) -> VerifiedToken | None:
    try:
        verified = jwt_rules().verify(token, NOW)
    except TokenRefused as refused:
        _check_refusal(refused, _JWT_TEXT)
        return None
    check_jwt(token, verified)
    return verified


def _read_keys(octets: bytes) -> None:
    """Read a JWK set, and check its keys."""
    found = _keys_or_reason(octets)
    if isinstance(found, str):
        assert _KEY_TEXT.fullmatch(found), "a text that may show a key"
        return
    assert found
    for key in found:
        assert key.algorithms
        is_secret = isinstance(key.key, bytes)
        assert all(each.startswith("HS") is is_secret for each in key.algorithms)
        assert not is_secret or len(key.key) >= LEAST_SECRET_BYTES
        assert not hasattr(key.key, "private_bytes"), "a private key is kept"
        assert "key=" not in repr(key)


def _keys_or_reason(octets: bytes) -> list[JwtKey] | str:
    try:
        return key_set(octets)
    except KeyUnusable as unusable:
        return str(unusable)


# Requests to `$cbs`.


@attrs.define
class Verifier:
    """Verifier with the fuzzer's keys, which checks what is accepted a second time."""

    requires_of_all: bool = True
    time_limit_s: float = 20.0

    def verify(self, kind: str, token: str, audience: str | None) -> VerifiedToken:
        """Return what a token allows."""
        del kind
        if token.startswith(PREFIX):
            verified = sas_keys().verify(token, NOW, LEEWAY_S)
            check_sas(token, verified)
        elif token.count(".") == 2:
            verified = jwt_rules().verify(token, NOW)
            check_jwt(token, verified)
        else:
            raise TokenRefused(400, "the token is of no accepted kind")
        if audience is not None and not covers_audience(
            verified, covering_paths(path_in(audience))
        ):
            raise TokenRefused(401, "the token does not cover the audience (name)")
        return verified


def cbs(octets: bytes) -> None:
    """Send requests to `$cbs`, each as the octets of a message; the first octet has settings.

    Its bits say whether there is a receiver for answers and whether it has credit; the rest is how
    many seconds pass between two requests.
    """
    first, rest = octets[:1] or b"\0", octets[1:]
    router = Router()
    claimant = Claimant(router, Verifier())  # type: ignore[arg-type]
    connection, client = claimant.client.connection, claimant.client
    claims = claimant.node.claims
    sender = client.sender("$cbs", name="requests")
    if first[0] & 1:
        client.receiver("$cbs", credit=100 if first[0] & 2 else 0, name="answers")
    before = client.receiver("orders", name="before")
    assert before.detached is not None, "nothing is granted without a token"
    for request in rest.split(BETWEEN)[:MOST_REQUESTS]:
        if not sender.can_send():
            break
        sender.send(request, message_format=0)
        assert connection.account.of_kind("tokens") == _charge(claimant)
        accepted = [each for each in router.events if isinstance(each, TokenAccepted)]
        assert accepted or not len(claims), "a token that nobody has verified"
        if first[0] >> 2:
            claimant.tick(float(first[0] >> 2))
            assert connection.account.of_kind("tokens") == _charge(claimant)
            if not connection.is_open():
                break
    assert sender.detached is None
    assert not connection.is_open() or sender.credit > 0 or first[0] & 3 == 1
    assert sender.credit <= CREDIT
    _check_links(claimant)
    for event in router.events:
        if isinstance(event, TokenNotAccepted):
            known = (_SAS_TEXT, _JWT_TEXT, _NODE_TEXT)
            assert any(each.fullmatch(event.reason) for each in known), "it may show the token"
    client.lose()
    assert connection.account.of_kind("tokens") == 0, "what was charged is not released"
    assert len(claims) == 0
    assert router.forwarder.backlog.held_bytes == 0
    assert len(router.table) == 0


def _charge(claimant: Claimant) -> int:
    """Return what the tokens that are kept should be charged."""
    claims = claimant.node.claims
    names = list(claims._tokens)
    paths = sum(len(token.grants) for token, _ in claims._tokens.values())
    assert paths == claims._path_count <= MOST_PATHS
    return sum(map(claims.octets_of, names))


def _check_links(claimant: Claimant) -> None:
    """Check that links are attached exactly as the tokens allow."""
    client, claims = claimant.client, claimant.node.claims
    if not claimant.client.connection.is_open():
        return
    for name in ("orders", "orders/eu", "secret"):
        receiver = client.receiver(name, name=f"after {name}")
        assert (receiver.detached is None) is claims.covers(name, 2)


# Seeds.

GOOD: dict[str, Any] = {"exp": NOW + 60, "aud": AUDIENCE, "sub": "me", "rights": ["send:orders"]}
_RIGHTS: list[object] = [
    ["send:orders", "listen:orders/eu", "manage:*"],
    "send:orders listen:amqps://h/orders other",
    {"orders": ["Send", "Listen"], "*": "Manage"},
    {"orders": 5},
    [["send:orders"]],
    None,
]


def sas_seeds() -> list[bytes]:
    """Return SAS tokens, right and wrong ones, and what is to be signed."""
    expiry = int(NOW) + 60
    tokens = [
        sas("sb://host/orders", key=KEY, expiry=expiry),
        sas("https://host:5671/", key="secondary", expiry=expiry),
        sas("orders", key="few", name="few", expiry=expiry),
        sas("orders", key=KEY, expiry=1),
        sas("orders", key="wrong", expiry=expiry),
        sas("orders", key=KEY, expiry="soon"),
        PREFIX,
    ]
    signed = [f"sb://h/orders\n{expiry}", f"o/ConsumerGroups/g\n{expiry}\n&x=y", "a\nb", ""]
    found = [b"\1" + each.encode() for each in tokens]
    return found + [b"\0" + each.encode() for each in signed]


def _jwts() -> list[str]:
    """Return JWTs, right and wrong ones."""
    public = ec_key()
    signed = f"{segment({'alg': 'ES256', 'kid': 'e'})}.{segment(GOOD)}"
    r, s = decode_dss_signature(public.sign(signed.encode(), ec.ECDSA(SHA256())))
    made = unpadded(r.to_bytes(_R_BYTES, "big") + s.to_bytes(_R_BYTES, "big"))
    return [
        hs256(SECRET, GOOD),
        hs256(SECRET, GOOD, kid="h"),
        hs256(SECRET, GOOD, alg="none"),
        hs256(SECRET, GOOD, crit=["b64"], b64=False),
        hs256(b"o" * 32, GOOD),
        f"{signed}.{made}",
        f"{segment({'alg': 'none'})}.{segment(GOOD)}.",
        "..",
    ]


def jwt_seeds() -> list[bytes]:
    """Return JWTs, payloads to be signed, headers and JWK sets."""
    found = [b"\0" + each.encode() for each in _jwts()]
    payloads = [{**GOOD, "rights": each} for each in _RIGHTS]
    payloads += [{**GOOD, name: value} for name in ("exp", "nbf", "iat", "aud")
                 for value in (NOW + 1e9, 1, -1, True, "x", [AUDIENCE], 1e300, None)]  # fmt: skip
    octets = [json.dumps(each).encode() for each in payloads]
    found += [b"\2" + each for each in octets]
    found += [b'\2{"exp":1,"exp":2}', b'\2{"exp":NaN}', b"\2" + b"[" * 5000, b"\2{"]
    headers: list[dict[str, object]] = [
        {"alg": "HS256"},
        {"alg": "none"},
        {"alg": "ES256"},
        {"alg": ["HS256"]},
        {"alg": "HS256", "kid": 5},
        {"alg": "HS256", "b64": False, "crit": ["b64"]},
        {"alg": "HS256", "jku": "http://h/", "jwk": {"kty": "oct", "k": "x"}},
    ]
    found += [b"\3" + json.dumps(each).encode() + BETWEEN + octets[0] for each in headers]
    return found + [b"\1" + json.dumps({"keys": each}).encode() for each in _key_sets()]


def _key_sets() -> list[list[object]]:
    """Return the lists of keys of some JWK sets."""
    numbers = ec_key().public_key().public_numbers()
    x, y = (unpadded(each.to_bytes(_R_BYTES, "big")) for each in (numbers.x, numbers.y))
    curve: dict[str, object] = {"kty": "EC", "crv": "P-256", "x": x, "y": y, "kid": "e"}
    secret: dict[str, object] = {"kty": "oct", "k": unpadded(SECRET), "alg": "HS256", "use": "sig"}
    rsa = {"kty": "RSA", "n": unpadded(b"\xc5" * 255 + b"\x01"), "e": "AQAB"}
    private = {**curve, "d": unpadded((2**200 + 12345).to_bytes(_R_BYTES, "big"))}
    okp = {"kty": "OKP", "crv": "Ed25519", "x": unpadded(b"\x58" + b"\x66" * 31)}
    return [[curve, secret], [rsa], [private], [okp], [{**curve, "alg": "HS256"}], [5], []]


def cbs_seeds() -> list[bytes]:
    """Return requests of both dialects, with right and wrong tokens, and some that are none."""
    tokens = [each[1:].decode() for each in sas_seeds()[:6]] + _jwts()[:6]
    requests: list[bytes] = []
    for token in tokens:
        for name in ("sb://host/orders", "orders"):
            given: dict[str, object] = {"operation": "put-token", "type": "jwt", "name": name}
            requests.append(_request(given, token))
        properties = Properties(subject="set-token", message_id="1")
        requests.append(_request({"token-type": "amqp:jwt"}, token, properties))
    right = requests[0]
    delete = _request({"operation": "delete-token", "name": "sb://host/orders"}, None)
    found = [bytes((first,)) + each for each in requests for first in (0, 3)]
    found += [bytes((first,)) + BETWEEN.join([right, delete, right, requests[2], right])
              for first in (0, 1, 3, 4 * 30 + 3)]  # fmt: skip
    others = [
        _request({"operation": "put-token", "name": "n" * 3000}, tokens[0]),
        _request({"operation": b"put-token", "name": b"orders"}, tokens[0].encode()),
        _request({"operation": "put-token", "name": "orders"}, [tokens[0]]),
        encode_message(Message(body=(Data(tokens[0].encode()),))),
        _request({}, tokens[0], Properties(reply_to="answers", correlation_id=b"x")),
    ]
    return found + [b"\3" + each for each in others]


def _request(given: dict[str, object], body: object, properties: Properties | None = None) -> bytes:
    message = Message(properties=properties, application_properties=given, body=(AmqpValue(body),))
    return encode_message(message)
