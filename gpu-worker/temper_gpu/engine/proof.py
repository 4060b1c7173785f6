"""Proof, at start and on the machine at hand, that the sizes of forward passes give the same bits.

Which kernel a matrix library takes depends on shapes, threads and the CPU, not on values. So whole layers of each kind
that the model has, the output head and the sampler are run on random prompts, in every size, at changing places among
changing neighbours, also at positions that take many key blocks. Logits and every key and value must be the expected
ones; a size whose numbers differ anywhere from the largest size's is not used. On a GPU this may leave a single size,
which is slower, not wrong.
"""

import copy
import re
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from temper_gpu.engine.activations import instantiate
from temper_gpu.engine.forward import LONG_PIECE, LONG_PROMPT, Forward, Piece, piece_size
from temper_gpu.engine.kv_cache import SlotCache
from temper_gpu.engine.sampling import sample, uniforms
from temper_gpu.engine.sizes import Sizes
from temper_gpu.failures import TemperError
from temper_gpu.instructions import NARROW
from temper_gpu.models import BaseModel

LENGTHS = (1, 2, 3, 5, 7, 11, 12, 13, 15, 16, 17, 21, 30, 33, 65, 130, 207, 333)
# The first so many are seated for decoding; beside them, in a second table, the last two in these slots.
NUM_SHORT = 14
LONG_SLOTS = (3, 11, 40, 100)
MAX_PROMPTS = 128
# Of prefill; a large size holds many prompts at once, and the largest is drawn twice as often.
NUM_DRAWS, NUM_DRAWS_OF_LARGE, LARGE = 2, 1, 256
# A second layer shows what the first makes of every token; a model this large takes too long for it.
MAX_PARAMETERS_FOR_TWO_LAYERS = 2e9
# By what was computed (a prompt's prefill, or its decode).
Answers = dict[tuple[str, int], list[Tensor]]


class Unproven(TemperError):
    """No size of a forward pass gives the same bits at every place."""

    def __init__(self, message: str) -> None:
        super().__init__("BadConfig", message)


def prove_sizes(base: BaseModel, sizes: Sizes, max_slots: int) -> Sizes:
    """The sizes that agree bit for bit with the largest one that agrees with itself."""
    with torch.inference_mode():
        trial = Trial(first_layers(base), sizes, max_slots)
        # A piece of a long prompt must fit into the largest size.
        for index in (i for i in reversed(range(len(sizes.allowed))) if sizes.allowed[i] >= LONG_PIECE or i == 0):
            expected: Answers = {}
            trial.seat(sizes.allowed[index])
            if not all(trial.agrees(sizes.allowed[index], expected) for _ in range(2)):
                continue
            # The largest that decodes is what others' decoding is compared with.
            allowed = [size for size in reversed(sizes.allowed[:index]) if trial.agrees(size, expected)]
            return replace(sizes, allowed=(*reversed(allowed), sizes.allowed[index]))
    narrow = " ".join(f"{name}={value}" for name, value in NARROW.items())
    raise Unproven(
        f"a forward pass of {base.name} must not depend on a token's position in it, but on this machine it does at "
        f"every size; use another number of threads (now {torch.get_num_threads()}), or start the GPU worker with "
        f"narrower instructions: {narrow}",
    )


def first_layers(base: BaseModel) -> BaseModel:
    """The same model with as few layers as show one of each kind (of the same names and shapes), two if need be."""
    kinds: dict[int, set[tuple[str, torch.Size]]] = {}
    for name, tensor in base.tensors.items():
        if (layer := layer_of(name)) is not None:
            kinds.setdefault(layer, set()).add((name.split(f".{layer}.", 1)[1], tensor.shape))
    firsts = [layer for layer in sorted(kinds) if not any(kinds[layer] == kinds[other] for other in range(layer))]
    least = 2 if base.num_parameters <= MAX_PARAMETERS_FOR_TWO_LAYERS else 1
    num_layers = min(max(firsts[-1] + 1, least), len(kinds)) if firsts else base.config.num_hidden_layers
    config = copy.deepcopy(base.config)
    config.num_hidden_layers = num_layers
    if getattr(config, "layer_types", None):
        config.layer_types = config.layer_types[:num_layers]
    tensors = {name: tensor for name, tensor in base.tensors.items() if (layer_of(name) or 0) < num_layers}
    return replace(base, config=config, tensors=tensors)


def layer_of(name: str) -> int | None:
    found = re.search(r"\.layers\.(\d+)\.", name)
    return int(found[1]) if found else None


class Trial:
    """Slot tables: one for prefill in changing company; two in which every slot holds a prompt, for decode, one of them
    with a few long prompts."""

    def __init__(self, base: BaseModel, sizes: Sizes, max_slots: int) -> None:
        self._rng = np.random.default_rng(0)
        self._model = instantiate(base)
        self._base, self._sizes, self._max_slots = base, sizes, max_slots
        self._lengths = [length for length in LENGTHS if length < base.context_window]
        self._prompts = [self._rng.integers(0, base.config.vocab_size, length) for length in self._lengths]
        self._table, self._short, self._mixed = (SlotCache(base.config, base.dtype, base.device) for _ in range(3))
        for table, rows in ((self._table, MAX_PROMPTS), (self._short, max_slots), (self._mixed, max_slots)):
            table.resize(rows, max(self._lengths) + 1)
        short = self._rng.integers(0, min(NUM_SHORT, len(self._lengths)), max_slots)
        mixed = short.copy()
        for number, slot in enumerate(slot for slot in LONG_SLOTS if slot < max_slots):
            mixed[slot] = len(self._lengths) - 1 - number % 2
        self._seats = ((self._short, short), (self._mixed, mixed))

    def seat(self, size: int) -> None:
        """Fills the slots for decoding."""
        for table, seats in self._seats:
            fitting = [(slot, int(index)) for slot, index in enumerate(seats) if self._fits(int(index), size)]
            self._prefill(table, fitting, size)

    def agrees(self, size: int, expected: Answers) -> bool:
        """Whether all numbers are the expected ones; if so, adds what was not known yet."""
        known = dict(expected)
        if not self._agrees(size, known):
            return False
        expected.update(known)
        return True

    def _agrees(self, size: int, expected: Answers) -> bool:
        num_draws = NUM_DRAWS if size < LARGE else NUM_DRAWS_OF_LARGE
        if not all(self._prefill_agrees(size, expected) for _ in range(num_draws)):
            return False
        return size > self._max_slots or all(
            self._decode_agrees(table, seats[:size], expected) for table, seats in self._seats
        )

    def _prefill_agrees(self, size: int, expected: Answers) -> bool:
        chosen = list(enumerate(self._fill(size)))
        logits = self._prefill(self._table, chosen, size)
        for slot, index in chosen:
            cached = [tensor[slot, :, : self._lengths[index]] for tensor in self._tensors(self._table)]
            if not is_expected(expected, ("prefill", index), [*logits[slot], *cached]):
                return False
        return True

    def _decode_agrees(self, table: SlotCache, seats: np.ndarray, expected: Answers) -> bool:
        size = len(seats)
        tokens = np.array([self._prompts[index][0] for index in seats])
        positions = np.array([self._lengths[index] for index in seats])
        logits = self._forward(table, size).decode(self._model, tokens, positions)
        outputs = self._outputs(logits, [int(index) for index in seats])
        for slot, index in enumerate(seats):
            cached = [tensor[slot, :, self._lengths[index]] for tensor in self._tensors(table)]
            if not is_expected(expected, ("decode", int(index)), [*outputs[slot], *cached]):
                return False
        return True

    def _prefill(self, table: SlotCache, chosen: list[tuple[int, int]], size: int) -> dict[int, tuple[Tensor, ...]]:
        """Whole pieces, as many passes as they need; by slot, what was computed of its last token."""
        forward, pieces = self._forward(table, size), [piece for seat in chosen for piece in self._pieces(*seat)]
        indices, results = dict(chosen), {}
        while pieces:
            taken = [pieces.pop(0)]
            room = size - len(taken[0].tokens)
            while pieces and len(pieces[0].tokens) <= room:
                room -= len(pieces[0].tokens)
                taken.append(pieces.pop(0))
            logits = forward.prefill(self._model, taken)
            slots = [piece.slot for piece in taken if piece.is_last]
            if slots:
                results |= zip(slots, self._outputs(logits, [indices[slot] for slot in slots]), strict=False)
        return results

    def _forward(self, table: SlotCache, size: int) -> Forward:
        return Forward(table, replace(self._sizes, allowed=(size,)), self._base.device)

    def _tensors(self, table: SlotCache) -> list[Tensor]:
        return [*table.keys, *table.values]

    def _pieces(self, slot: int, index: int) -> list[Piece]:
        prompt = self._prompts[index]
        size, end = piece_size(len(prompt)), len(prompt)
        return [
            Piece(slot, start, prompt[start : start + size], size, start + size >= end) for start in range(0, end, size)
        ]

    def _fits(self, index: int, size: int) -> bool:
        return size >= LONG_PIECE or self._lengths[index] <= min(size, LONG_PROMPT)

    def _fill(self, size: int) -> list[int]:
        """Prompts in random order, about as many as fill a pass, one of them long where its pieces fit."""
        chosen = [len(self._lengths) - 1 - int(self._rng.integers(2))] if size >= LONG_PIECE else []
        room = size
        for index in self._rng.integers(0, len(self._lengths), size):
            if self._lengths[index] <= room and self._fits(int(index), size) and len(chosen) < MAX_PROMPTS:
                chosen.append(int(index))
                room -= self._lengths[index]
        return [chosen[place] for place in self._rng.permutation(len(chosen))]

    def _outputs(self, logits: Tensor, indices: list[int]) -> list[tuple[Tensor, ...]]:
        """Row by row, for the rows of these prompts: logits, and the log-probability of what is sampled."""
        seeds = [*indices, *[0] * (len(logits) - len(indices))]
        _, logprobs = sample(logits, [1.0] * len(logits), uniforms(seeds, [0] * len(logits)))
        return [(logits[row], torch.tensor(logprobs[row])) for row in range(len(indices))]


def is_expected(expected: Answers, key: tuple[str, int], numbers: list[Tensor]) -> bool:
    if key not in expected:
        expected[key] = [tensor.clone() for tensor in numbers]
    return all(torch.equal(known, tensor) for known, tensor in zip(expected[key], numbers, strict=True))
