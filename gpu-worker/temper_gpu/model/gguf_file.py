"""Files in GGUF, version 3 (github.com/ggml-org/ggml, docs/gguf.md), which llama.cpp and what is built on it load.

The package that writes them would be installed for every user, for sixty lines. The same input gives the same bytes.
"""

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
import torch
from torch import Tensor

MAGIC, VERSION, ALIGNMENT = b"GGUF", 3, 32
# Weights in a row of q8_0 that share a scale.
BLOCK = 32

Value = str | bool | int | float | Sequence[str] | Sequence[int]


@dataclass(frozen=True)
class NumberType:
    """A type of weights. `code`: ggml's; `file_type`: that of a file which has mostly such weights."""

    name: str
    code: int
    file_type: int
    # For a row of so many weights.
    row_bytes: Callable[[int], int]
    encode: Callable[[Tensor], bytes]


def _plain(dtype: torch.dtype) -> Callable[[Tensor], bytes]:
    return lambda tensor: tensor.to(dtype).contiguous().view(torch.uint8).numpy().tobytes()


def q8_0_parts(tensor: Tensor) -> tuple[Tensor, Tensor]:
    """Scales in float16, and integers from -127 to 127, of blocks along the rows."""
    blocks = tensor.float().reshape(-1, BLOCK)
    scales = blocks.abs().amax(1, keepdim=True) / 127
    inverse = torch.where(scales > 0, 1 / scales, torch.zeros_like(scales))
    # Halves away from zero, as ggml rounds.
    scaled = blocks * inverse
    integers = torch.sign(scaled) * torch.floor(scaled.abs() + 0.5)
    return scales.to(torch.float16), integers.to(torch.int8)


def _encode_q8_0(tensor: Tensor) -> bytes:
    scales, integers = q8_0_parts(tensor)
    return np.concatenate([scales.numpy().view(np.int8), integers.numpy()], axis=1).tobytes()


FLOAT32 = NumberType("float32", 0, 0, lambda count: 4 * count, _plain(torch.float32))
FLOAT16 = NumberType("float16", 1, 1, lambda count: 2 * count, _plain(torch.float16))
BFLOAT16 = NumberType("bfloat16", 30, 32, lambda count: 2 * count, _plain(torch.bfloat16))
Q8_0 = NumberType("q8_0", 8, 7, lambda count: count // BLOCK * (BLOCK + 2), _encode_q8_0)
NUMBER_TYPES = {kind.name: kind for kind in (FLOAT32, FLOAT16, BFLOAT16, Q8_0)}


def type_of(tensor: Tensor, wanted: NumberType) -> NumberType:
    """llama.cpp computes with vectors in float32 alone, and rows of q8_0 are whole blocks."""
    if tensor.dim() < 2:
        return FLOAT32
    return FLOAT16 if wanted is Q8_0 and tensor.shape[-1] % BLOCK != 0 else wanted


def write_gguf(
    file: Path, fields: Mapping[str, Value], tensors: Iterable[tuple[str, Tensor]], kind: NumberType
) -> None:
    named = [(name, tensor, type_of(tensor, kind)) for name, tensor in tensors]
    with file.open("wb") as to:
        to.write(MAGIC + struct.pack("<IQQ", VERSION, len(named), len(fields)))
        for name, value in fields.items():
            to.write(_string(name) + _typed(value))
        offset = 0
        for name, tensor, own in named:
            shape = tuple(reversed(tensor.shape))
            to.write(_string(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, own.code, offset))
            offset += _padded(own.row_bytes(shape[0]) * (tensor.numel() // shape[0]))
        _pad(to)
        for _, tensor, own in named:
            to.write(own.encode(tensor.detach().cpu()))
            _pad(to)


def _padded(length: int) -> int:
    return -(-length // ALIGNMENT) * ALIGNMENT


def _pad(to: IO[bytes]) -> None:
    at = to.tell()
    to.write(b"\0" * (_padded(at) - at))


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _typed(value: Value) -> bytes:
    """A type's code and the value. Whole numbers are unsigned, but signed in lists, as llama.cpp reads them."""
    match value:
        case bool():
            return struct.pack("<I?", 7, value)
        case int():
            return struct.pack("<II", 4, value)
        case float():
            return struct.pack("<If", 6, value)
        case str():
            return struct.pack("<I", 8) + _string(value)
    if all(isinstance(each, str) for each in value):
        return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(_string(str(each)) for each in value)
    return struct.pack(f"<IIQ{len(value)}i", 9, 5, len(value), *value)
