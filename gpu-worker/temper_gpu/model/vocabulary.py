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
from typing import Any, NamedTuple

import orjson

from temper_gpu.contract import RECORD_SCHEMA
from temper_gpu.model.detokenizer import HARMONY, STRUCTURE

SPACE = "\N{LOWER ONE EIGHTH BLOCK}"
# A higher level takes six times as long for a few percent.
COMPRESSION = 6
_BYTE = re.compile("<0x([0-9A-Fa-f]{2})>")

# A token to its bytes, as text in latin-1.
Piece = Callable[[str], str]


class Decoder(NamedTuple):
    piece: Piece
    drops_first_space: bool


def vocabulary_bytes(tokenizer: Any) -> bytes:
    """The same bytes for the same tokenizer: JSON with pieces as text in latin-1, null where an id has no token."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    decoder = None if backend is None else read_decoder(backend.decoder)
    tokens = _tokens_of(tokenizer, backend)
    if decoder is None:
        pieces = {token_id: _decoded(tokenizer, token, token_id) for token_id, token in tokens.items()}
    else:
        pieces = {token_id: decoder.piece(token) for token_id, token in tokens.items()}
    described = {
        "schema": RECORD_SCHEMA,
        "dropsFirstSpace": decoder is not None and decoder.drops_first_space,
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


def _decoded(tokenizer: Any, token: str, token_id: int) -> str:
    """Asks the tokenizer itself, whose decoder is not known: it tells no bytes that are less than a character, and may
    drop a space."""
    byte = _BYTE.fullmatch(token)
    if byte is not None:
        return chr(int(byte[1], 16))
    text = token.replace(SPACE, " ") if SPACE in token else tokenizer.decode([token_id], skip_special_tokens=False)
    return _bytes_of(text)


def _bytes_of(text: str) -> str:
    return text.encode(errors="replace").decode("latin-1")


def read_decoder(decoder: Any) -> Decoder | None:
    """None if it has a step that is not known here."""
    if decoder is None:
        return Decoder(lambda token: _bytes_of(f" {token}"), True)
    described: dict[str, Any] = json.loads(decoder.__getstate__())
    steps = described["decoders"] if described["type"] == "Sequence" else [described]
    kinds = [step["type"] for step in steps]
    if kinds == ["ByteLevel"]:
        return Decoder(byte_level_piece, False)
    # After `Fuse`, steps work on the whole text: they strip its first token.
    num_of_tokens = kinds.index("Fuse") if "Fuse" in kinds else len(kinds)
    of_tokens = [step for place, step in enumerate(steps) if place < num_of_tokens or step["type"] != "Strip"]
    changes = [_change(step) for step in of_tokens]
    known = [change for change in changes if change is not None]
    if len(known) < len(changes):
        return None
    of_text = [step for step in steps[num_of_tokens:] if step["type"] == "Strip"]
    return Decoder(partial(_piece, known, "ByteFallback" in kinds), any(map(_drops_first_space, of_text)))


def _piece(changes: list[Piece], reads_bytes: bool, token: str) -> str:
    byte = _BYTE.fullmatch(token) if reads_bytes else None
    if byte is not None:
        return chr(int(byte[1], 16))
    for change in changes:
        token = change(token)
    return _bytes_of(token)


def _drops_first_space(strip: dict[str, Any]) -> bool:
    return strip["content"] == " " and strip["start"] > 0


def _change(step: dict[str, Any]) -> Piece | None:
    """The effect of a step on a token that is not the first one; None if the step is not known."""
    match step["type"]:
        case "Replace" if "String" in step["pattern"]:
            return lambda token: token.replace(step["pattern"]["String"], step["content"])
        case "Strip":
            return partial(_stripped, step)
        case "Fuse" | "ByteFallback":
            return lambda token: token
        case _:
            return None


def _stripped(step: dict[str, Any], token: str) -> str:
    content: str = step["content"]
    left = min(step["start"], len(token) - len(token.lstrip(content)))
    right = min(step["stop"], len(token) - len(token.rstrip(content)))
    return token[left : max(left, len(token) - right)]


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
