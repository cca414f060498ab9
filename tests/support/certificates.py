"""Private authorities, and certificates that they sign, in files."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import attrs
import trustme

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

    def profile(self, name: str = "tls", **fields: object) -> SslProfileSettings:
        """Return a profile with a certificate for localhost and this authority."""
        fields.setdefault("cert_file", self.issue("localhost", "127.0.0.1"))
        fields.setdefault("ca_cert_file", self.ca_file)
        return SslProfileSettings(name=name, **fields)  # type: ignore[arg-type]
