"""Private authorities, and certificates that they sign, in files."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import attrs
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

from router.config.ssl_profiles import SslProfileSettings


@attrs.define
class Authority:
    """Authority that signs certificates into files of a folder."""

    folder: Path
    ca: trustme.CA = attrs.field(factory=trustme.CA)

    @property
    def ca_file(self) -> Path:
        """Return the file with the authority's own certificate."""
        file = self.folder / f"ca-{id(self)}.pem"
        if not file.exists():
            self.ca.cert_pem.write_to_path(file)
        return file

    def issue(
        self,
        *names: str,
        file: str = "",
        common_name: str | None = None,
        not_after: datetime | None = None,
    ) -> Path:
        """Return a new file with a certificate for these names, and its key."""
        issued = self.ca.issue_cert(*names, common_name=common_name, not_after=not_after)
        path = self.folder / (
            file or f"{names[0].strip('*.')}-{len(list(self.folder.iterdir()))}.pem"
        )
        path.write_bytes(b"")
        for part in (issued.private_key_pem, *issued.cert_chain_pems):
            part.write_to_path(path, append=True)
        return path

    def revoke(
        self,
        *files: Path,
        begins: timedelta = timedelta(days=-1),
        next_update: timedelta = timedelta(days=1),
        name: str = "",
    ) -> Path:
        """Write the list of revoked certificates anew, with those of these files, and return it.

        The list is valid from `begins` to `next_update` from now, both of which may be negative.
        All lists of one name are one file.
        """
        now = datetime.now(UTC)
        key = load_pem_private_key(self.ca.private_key_pem.bytes(), None)
        assert isinstance(key, EllipticCurvePrivateKey)
        own = x509.load_pem_x509_certificate(self.ca.cert_pem.bytes())
        revoked = x509.CertificateRevocationListBuilder(
            issuer_name=own.subject,
            last_update=now + min(begins, next_update - timedelta(days=1)),
            next_update=now + next_update,
            revoked_certificates=[
                x509.RevokedCertificateBuilder(certificate(file).serial_number, now).build()
                for file in files
            ],
        )
        path = self.folder / f"revoked{name}-{id(self)}.pem"
        path.write_bytes(revoked.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM))
        return path

    def profile(self, name: str = "tls", **fields: object) -> SslProfileSettings:
        """Return a profile with a certificate for localhost and this authority."""
        fields.setdefault("cert_file", self.issue("localhost", "127.0.0.1"))
        fields.setdefault("ca_cert_file", self.ca_file)
        return SslProfileSettings(name=name, **fields)  # type: ignore[arg-type]


def certificate(file: Path) -> x509.Certificate:
    """Return the first certificate of a file."""
    return x509.load_pem_x509_certificate(file.read_bytes())
