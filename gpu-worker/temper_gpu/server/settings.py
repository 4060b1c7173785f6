"""Limits of the HTTP server. The environment is read in `__main__` alone."""

from dataclasses import dataclass

from temper_gpu.contract import MAX_BODY_BYTES


@dataclass(frozen=True)
class ServerSettings:
    max_body_bytes: int = MAX_BODY_BYTES
    # Bytes of all bodies that are being read.
    max_held_bytes: int = 512 << 20
    # Names under which clients may address this server, besides loopback (protection from DNS rebinding).
    hosts: frozenset[str] = frozenset()
    # `max_tokens` of a request that names none.
    default_max_tokens: int = 1024
    default_deadline_s: float = 300.0
    # Limits of one request, its first line included. The time starts with its first byte, or with the connection.
    max_header_bytes: int = 64 << 10
    header_timeout_s: float = 10.0
    # Limits of connections without a complete request or the key. Another one ends the oldest if that has lasted this
    # long.
    max_unfinished: int = 256
    unfinished_grace_s: float = 2.0
    # A connection without a request is closed, and one whose client takes nothing of its answer.
    idle_timeout_s: float = 75.0
