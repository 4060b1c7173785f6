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
Answers = dict[int, tuple[Tensor, float]]


def prove_sizes(base: BaseModel, sizes: Sizes, max_slots: int) -> Sizes:
    """The sizes that agree bit for bit with the largest one that agrees with itself."""
    with torch.inference_mode():
        trial = Trial(one_layer(base), sizes, max_slots)
        for index in reversed(range(len(sizes.allowed))):
            expected: Answers = {}
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
    def __init__(self, base: BaseModel, sizes: Sizes, max_slots: int) -> None:
        self._rng = np.random.default_rng(0)
        self._model = base.instantiate(ATTENTION)
        self._device, self._dtype = base.device, base.dtype
        self._cache = SlotCache(base.config, self._dtype, self._device)
        self._cache.resize(sizes.largest, max(LENGTHS) + 1)
        self._sizes = sizes
        self._max_slots = max_slots
        self._prompts = [self._rng.integers(0, base.config.vocab_size, length) for length in LENGTHS]

    def agrees(self, size: int, expected: Answers) -> bool:
        """Runs prompts in a random order; adds to `expected` what it does not know yet."""
        forward = Forward(self._cache, replace(self._sizes, allowed=(size,)), self._device, self._dtype)
        chosen = self._fill(size)
        pieces = [
            Piece(
                slot,
                start,
                prompt[start : start + (step := piece_size(len(prompt)))],
                step,
                start + step >= len(prompt),
            )
            for slot, prompt in enumerate(self._prompts[index] for index in chosen)
            for start in range(0, len(prompt), piece_size(len(prompt)))
        ]
        logits = forward.prefill(self._model, pieces)
        if not self._same(logits, chosen, expected, 0):
            return False
        if size > self._max_slots:
            return True
        # Decoding every slot of the pass, also those in which nobody sits.
        tokens, positions = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
        for slot, index in enumerate(chosen[:size]):
            tokens[slot], positions[slot] = self._prompts[index][0], len(self._prompts[index])
        return self._same(forward.decode(self._model, tokens, positions), chosen, expected, len(LENGTHS))

    def _fill(self, size: int) -> list[int]:
        """Prompts in random order, as many as fit."""
        chosen: list[int] = []
        room = size
        for index in self._rng.integers(0, len(LENGTHS), size):
            if LENGTHS[index] <= room:
                chosen.append(int(index))
                room -= LENGTHS[index]
        return chosen

    def _same(self, logits: Tensor, chosen: list[int], expected: Answers, offset: int) -> bool:
        seeds = [*chosen, *[0] * (len(logits) - len(chosen))]
        _, logprobs = sample(logits, [1.0] * len(logits), uniforms(seeds, [0] * len(logits)))
        answers = [(offset + index, logits[row], logprobs[row]) for row, index in enumerate(chosen)]
        for key, row, logprob in answers:
            known, known_logprob = expected.setdefault(key, (row.clone(), logprob))
            if not torch.equal(known, row) or known_logprob != logprob:
                return False
        return True
