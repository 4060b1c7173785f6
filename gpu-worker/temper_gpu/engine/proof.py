"""Proof, at start and on the machine at hand, that the sizes of forward passes give the same bits.

Which kernel a matrix library takes depends on shapes, threads and the CPU, not on values. So one decoder layer, the
output head and the sampler are run on random prompts, in every size, at changing places among changing neighbours; a
size whose numbers differ anywhere from the largest size's is not used. On a GPU this may leave a single size, which is
slower, not wrong.
"""

import copy
import re
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from temper_gpu.engine.attention import ATTENTION
from temper_gpu.engine.forward import Forward, Piece, piece_size
from temper_gpu.engine.kv_cache import SlotCache
from temper_gpu.engine.sampling import sample, uniforms
from temper_gpu.engine.sizes import Sizes
from temper_gpu.failures import TemperError
from temper_gpu.models import BaseModel

LENGTHS = (1, 2, 3, 5, 7, 11, 12, 13, 15, 16, 17, 21, 30, 33, 65, 130)
# The first so many are seated for decoding.
NUM_SHORT = 14
MAX_PROMPTS = 128
Answers = dict[int, tuple[Tensor, float]]


def prove_sizes(base: BaseModel, sizes: Sizes, max_slots: int) -> Sizes:
    """The sizes that agree bit for bit with the largest one that agrees with itself."""
    with torch.inference_mode():
        trial = Trial(one_layer(base), sizes, max_slots)
        for index in reversed(range(len(sizes.allowed))):
            expected: Answers = {}
            trial.seat(sizes.allowed[index])
            if not all(trial.agrees(sizes.allowed[index], expected) for _ in range(2)):
                continue
            allowed = [size for size in sizes.allowed[:index] if trial.agrees(size, expected)]
            return replace(sizes, allowed=(*allowed, sizes.allowed[index]))
    raise TemperError(
        "BadConfig",
        f"a forward pass of {base.name} must not depend on a token's place in it, on this machine every size does; "
        f"use another number of threads (now {torch.get_num_threads()})",
    )


def one_layer(base: BaseModel) -> BaseModel:
    """The same model with its first layer only: all layers have the same shapes."""
    config = copy.deepcopy(base.config)
    config.num_hidden_layers = 1
    if getattr(config, "layer_types", None):
        config.layer_types = config.layer_types[:1]
    tensors = {name: tensor for name, tensor in base.tensors.items() if layer_of(name) == 0}
    return replace(base, config=config, tensors=tensors)


def layer_of(name: str) -> int:
    found = re.search(r"\.layers\.(\d+)\.", name)
    return int(found[1]) if found else 0


class Trial:
    """Two slot tables: one for prefill in changing company, one in which every slot holds a prompt, for decode."""

    def __init__(self, base: BaseModel, sizes: Sizes, max_slots: int) -> None:
        self._rng = np.random.default_rng(0)
        self._model = base.instantiate(ATTENTION)
        self._base, self._sizes, self._max_slots = base, sizes, max_slots
        self._prompts = [self._rng.integers(0, base.config.vocab_size, length) for length in LENGTHS]
        self._table, self._seated = (SlotCache(base.config, base.dtype, base.device) for _ in range(2))
        for table in (self._table, self._seated):
            table.resize(max(max_slots, MAX_PROMPTS), max(LENGTHS) + 1)
        self._seats = self._rng.integers(0, NUM_SHORT, max_slots)

    def seat(self, size: int) -> None:
        """Fills the slots for decoding."""
        forward = self._forward(self._seated, size)
        fitting = [slot for slot, index in enumerate(self._seats) if LENGTHS[index] <= size]
        while fitting:
            taken = fitting[: max(1, size // LENGTHS[NUM_SHORT - 1])]
            forward.prefill(self._model, [piece for slot in taken for piece in self._pieces(slot, self._seats[slot])])
            fitting = fitting[len(taken) :]

    def agrees(self, size: int, expected: Answers) -> bool:
        """Whether all numbers are the expected ones; adds what is not known yet."""
        chosen = self._fill(size)
        pieces = [piece for slot, index in enumerate(chosen) for piece in self._pieces(slot, index)]
        logits = self._forward(self._table, size).prefill(self._model, pieces)
        if not self._same(logits, chosen, expected, 0):
            return False
        if size > self._max_slots:
            return True
        indices = [int(index) for index in self._seats[:size]]
        tokens = np.array([self._prompts[index][0] for index in indices])
        positions = np.array([LENGTHS[index] for index in indices])
        logits = self._forward(self._seated, size).decode(self._model, tokens, positions)
        return self._same(logits, indices, expected, len(LENGTHS))

    def _forward(self, table: SlotCache, size: int) -> Forward:
        return Forward(table, replace(self._sizes, allowed=(size,)), self._base.device)

    def _pieces(self, slot: int, index: int) -> list[Piece]:
        prompt = self._prompts[index]
        size, end = piece_size(len(prompt)), len(prompt)
        return [
            Piece(slot, start, prompt[start : start + size], size, start + size >= end) for start in range(0, end, size)
        ]

    def _fill(self, size: int) -> list[int]:
        """Prompts in random order, as many as fit."""
        chosen: list[int] = []
        room = size
        for index in self._rng.integers(0, len(LENGTHS), size):
            if LENGTHS[index] <= room and len(chosen) < MAX_PROMPTS:
                chosen.append(int(index))
                room -= LENGTHS[index]
        return chosen

    def _same(self, logits: Tensor, chosen: list[int], expected: Answers, offset: int) -> bool:
        seeds = [*chosen, *[0] * (len(logits) - len(chosen))]
        _, logprobs = sample(logits, [1.0] * len(logits), uniforms(seeds, [0] * len(logits)))
        for row, index in enumerate(chosen):
            known, logprob = expected.setdefault(offset + index, (logits[row].clone(), logprobs[row]))
            if not torch.equal(known, logits[row]) or logprob != logprobs[row]:
                return False
        return True
