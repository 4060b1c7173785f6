"""The bytes that each token id of a tokenizer stands for, for readers that do not have the base model.

The bytes of several ids, joined, are the text that the tokenizer decodes them to, special tokens included. There are
two differences. Some decoders drop the space before the first token of all, which its bytes keep (`dropsFirstSpace`).
And bytes that are no UTF-8 may become another number of replacement characters.
"""

import gzip
import json
import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import orjson

from temper_gpu.contract import RECORD_SCHEMA
from temper_gpu.model.detokenizer import HARMONY, STRUCTURE

SPACE = "\N{LOWER ONE EIGHTH BLOCK}"
# A higher level takes six times as long for a few percent.
COMPRESSION = 6
_BYTE = re.compile("<0x([0-9A-Fa-f]{2})>")

# The decoder of SentencePiece's tokenizers, as transformers writes it. It has no last step if they add no space before
# the first token.
SENTENCE_PIECE: list[dict[str, Any]] = [
    {"type": "Replace", "pattern": {"String": SPACE}, "content": " "},
    {"type": "ByteFallback"},
    {"type": "Fuse"},
    {"type": "Strip", "content": " ", "start": 1, "stop": 0},
]

# A token and its id to its bytes, as text in latin-1.
Reader = Callable[[str, int], str]


def vocabulary_bytes(tokenizer: Any) -> bytes:
    """The same bytes for the same tokenizer: JSON with pieces as text in latin-1, null where an id has no token."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    read, drops_first_space = _reader(tokenizer, backend)
    pieces = {token_id: read(token, token_id) for token_id, token in _tokens_of(tokenizer, backend).items()}
    described = {
        "schema": RECORD_SCHEMA,
        "dropsFirstSpace": drops_first_space,
        "control": sorted(_control_ids(tokenizer)),
        "pieces": [pieces.get(token_id) for token_id in range(max(pieces, default=-1) + 1)],
    }
    return gzip.compress(orjson.dumps(described), COMPRESSION, mtime=0)


def _tokens_of(tokenizer: Any, backend: Any) -> dict[int, str]:
    """An added token may have taken the id of another one."""
    if backend is None:
        return {token_id: token for token, token_id in tokenizer.get_vocab().items()}
    return {token_id: backend.id_to_token(token_id) for token_id in backend.get_vocab(True).values()}


def _control_ids(tokenizer: Any) -> Iterable[int]:
    """Special tokens, and those that families do not call special but structure answers with."""
    for token_id, token in getattr(tokenizer, "added_tokens_decoder", {}).items():
        if token.special or token.content in STRUCTURE | HARMONY:
            yield token_id


def _reader(tokenizer: Any, backend: Any) -> tuple[Reader, bool]:
    """Also whether the decoder drops the first space. Asks the tokenizer for each token if its decoder is another one:
    that tells no bytes that are less than a character, and may drop a space."""
    if backend is None:
        return partial(_sentence_piece, tokenizer.decode), False
    if backend.decoder is None:
        return lambda token, _: _bytes_of(f" {token}"), True
    described: dict[str, Any] = json.loads(backend.decoder.__getstate__())
    steps = described.get("decoders", [described])
    if [step["type"] for step in steps] == ["ByteLevel"]:
        return lambda token, _: byte_level_piece(token), False
    is_known = steps in (SENTENCE_PIECE, SENTENCE_PIECE[:-1])
    return partial(_sentence_piece, None if is_known else tokenizer.decode), steps == SENTENCE_PIECE


def _sentence_piece(decode: Callable[..., str] | None, token: str, token_id: int) -> str:
    """`decode`: of tokens without a mark of a space; None if they are text as they are."""
    byte = _BYTE.fullmatch(token)
    if byte is not None:
        return chr(int(byte[1], 16))
    is_text = decode is None or SPACE in token
    return _bytes_of(token.replace(SPACE, " ") if is_text else decode([token_id], skip_special_tokens=False))


def _bytes_of(text: str) -> str:
    return text.encode(errors="replace").decode("latin-1")


def _byte_alphabet() -> dict[int, str]:
    """GPT-2's: a byte that prints is itself, each other one takes the next free character."""
    shown = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in shown]
    return {byte: chr(byte) for byte in shown} | {256 + place: chr(byte) for place, byte in enumerate(hidden)}


_ALPHABET = _byte_alphabet()
_OF_ALPHABET = re.compile(f"[{''.join(re.escape(chr(code)) for code in _ALPHABET)}]*")


def byte_level_piece(token: str) -> str:
    """A token with a character that stands for no byte is text as it is."""
    return token.translate(_ALPHABET) if _OF_ALPHABET.fullmatch(token) else _bytes_of(token)
