"""S3's client: finds addresses and keys as AWS's own tools do, and bounds every wait."""

import os
from dataclasses import dataclass
from typing import Any

from boto3.s3.transfer import TransferConfig
from boto3.session import Session
from botocore.config import Config


@dataclass(frozen=True)
class S3Settings:
    connect_timeout_s: float = 5
    # Longest wait for the server's next byte.
    read_timeout_s: float = 30
    # Tries of one request. With standard mode's growing pauses, they outlast a server's restart.
    max_attempts: int = 4
    # Larger objects are sent in parts of this size, a few at a time. S3 allows 10,000 parts of at least 5 MiB.
    part_bytes: int = 32 << 20

    @property
    def transfer(self) -> TransferConfig:
        return TransferConfig(
            multipart_threshold=self.part_bytes, multipart_chunksize=self.part_bytes, max_concurrency=4
        )


def create_client(settings: S3Settings) -> Any:
    """Takes endpoint, keys and profile from AWS's environment and files. Buckets of a custom endpoint are paths."""
    config = Config(
        connect_timeout=settings.connect_timeout_s,
        read_timeout=settings.read_timeout_s,
        retries={"mode": "standard", "total_max_attempts": settings.max_attempts},
        # Not every server knows the checksums that AWS's clients add by default. Each body's sha256 is signed
        # instead, parts of large ones included: every server checks that.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        s3={"payload_signing_enabled": True},
        tcp_keepalive=True,
    )
    # Python's client reads AWS_DEFAULT_REGION alone, the others AWS_REGION: both must mean the same host.
    session = Session(region_name=os.environ.get("AWS_REGION") or None)
    return session.client("s3", config=config)
