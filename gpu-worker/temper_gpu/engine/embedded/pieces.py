"""Pieces of prompts for prefill, and the keys that identify them in the prefix cache.

Shapes: C tokens of a piece.
"""

import hashlib
from dataclasses import dataclass

import numpy as np

from temper_gpu.engine.embedded.attention import CHUNK

# Tokens of a piece, by length of the prompt: part of what a prompt's bits depend on, so never chosen by load.
SHORT_PIECE, LONG_PIECE, LONG_PROMPT = 16, 64, 64
KEY_BYTES = 16


@dataclass(frozen=True)
class Piece:
    """Prompt tokens of one slot that are prefilled together; every prompt is cut at multiples of its piece size."""

    slot: int
    start: int
    tokens: np.ndarray
    size: int
    is_last: bool

    @property
    def end(self) -> int:
        return self.start + len(self.tokens)


def piece_size(prompt_length: int) -> int:
    return SHORT_PIECE if prompt_length <= LONG_PROMPT else LONG_PIECE


def cut(prompt: np.ndarray, slot: int, start: int, max_tokens: int) -> list[Piece]:
    """Cuts the rest of a prompt from `start` on into at most one pass."""
    size, end = piece_size(len(prompt)), len(prompt)
    return [
        Piece(slot, first, prompt[first : first + size], size, is_last=first + size >= end)
        for first in range(start, min(end, start + max_tokens), size)
    ]


def chunk_names(keys: list[bytes], prompt_length: int) -> list[bytes]:
    """Keys of a prompt's whole chunks: each hashes the prompt up to its end."""
    pieces = CHUNK // piece_size(prompt_length)
    return keys[pieces - 1 : prompt_length // CHUNK * pieces : pieces]


def piece_keys(policy: str | None, prompt: np.ndarray) -> list[bytes]:
    """One for each piece: of all that its keys and values depend on. Equal keys, equal bits."""
    size = piece_size(len(prompt))
    key, keys = f"{policy} {size}".encode(), []
    for start in range(0, len(prompt), size):
        key = hashlib.blake2b(key + prompt[start : start + size].tobytes(), digest_size=KEY_BYTES).digest()
        keys.append(key)
    return keys
