"""Proof, at start and on the machine at hand, that the sizes of forward passes give the same bits.

Which kernel a matrix library takes depends on shapes, threads and the CPU, not on values. So whole layers of each kind
that the model has, the output head and the sampler are run on random prompts, in every size, at changing places among
changing neighbours, also at positions behind whole chunks of keys, shared and not. Logits and every key and value must
be the expected ones; a size whose numbers differ anywhere from the largest size's is not used. On a GPU this may leave
a single size, which is slower, not wrong.

Where adapters stay beside the weights, the same is done with an adapter on every layer.

Each draw is one pass: what precedes a piece of a long prompt is copied from what is expected, not computed again. So a
model of billions of parameters, whose largest size is small, is run on about 3,000 tokens, in one or two of its layers.
"""

import re
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from temper_gpu.engine.embedded.adapted import AdaptedModel
from temper_gpu.engine.embedded.attention import CHUNK
from temper_gpu.engine.embedded.forward import Forward
from temper_gpu.engine.embedded.kv_cache import SlotCache
from temper_gpu.engine.embedded.pieces import LONG_PIECE, LONG_PROMPT, SHORT_PIECE, Piece, cut
from temper_gpu.engine.embedded.sampling import sample, uniforms
from temper_gpu.engine.embedded.sizes import Sizes
from temper_gpu.failures import TemperError
from temper_gpu.model.instructions import NARROW
from temper_gpu.model.layers import attention_windows
from temper_gpu.model.models import BaseModel
from temper_gpu.model.outlines import shortened

LENGTHS = (1, 2, 3, 5, 7, 11, 12, 13, 15, 16, 17, 21, 30, 33, 65, 130, 207, 300, 333)
# Number of prompts in the first decode table; a second table also has the last three, in these slots.
NUM_SHORT = 14
NUM_LONG = 3
LONG_SLOTS = (2, 3, 4, 5, 7, 8, 10, 11, 40, 41, 42, 44, 90, 91, 93, 94, 100)
# Index of a prompt whose second half is decoded like an answer, which is not shared.
ANSWERED = len(LENGTHS) - 2
MAX_PROMPTS = 128
# Draws of prefill passes by size; a pass of a large size holds many prompts.
NUM_DRAWS, NUM_DRAWS_OF_LARGE, LARGE = 2, 1, 256
# A second layer shows what the first makes of every token; a model this large takes too long for it.
MAX_PARAMETERS_FOR_TWO_LAYERS = 2e9
# Key of a computed number: "prefill" or "decode", the prompt, and the first position.
Key = tuple[str, int, int]
# Keys and values of every layer, and where a token is sampled also its logits and log-probability.
Answers = dict[Key, list[Tensor]]


class Unproven(TemperError):
    """No size of a forward pass gives the same bits at every place."""

    def __init__(self, message: str) -> None:
        super().__init__("BadConfig", message)


def prove_sizes(base: BaseModel, sizes: Sizes, max_slots: int, beside: bool = False) -> Sizes:
    """The sizes that agree bit for bit with the largest one that agrees with itself. `beside`: also with an adapter
    beside the weights."""
    few = first_layers(base)
    for is_adapted in (False, True) if beside else (False,):
        sizes = _prove(few, sizes, max_slots, is_adapted)
    return sizes


def _prove(base: BaseModel, sizes: Sizes, max_slots: int, is_adapted: bool) -> Sizes:
    with torch.inference_mode():
        trial = Trial(base, sizes, max_slots, is_adapted)
        # A piece of a long prompt must fit into the largest size.
        for index in (i for i in reversed(range(len(sizes.allowed))) if sizes.allowed[i] >= LONG_PIECE or i == 0):
            expected: Answers = {}
            trial.learn(sizes.allowed[index], expected)
            if not trial.agrees(sizes.allowed[index], expected):
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
    """The same model with as few layers as show one of each kind (of the same names, shapes and window), two if need
    be."""
    windows = attention_windows(base.config)
    kinds: dict[int, set[tuple[str, object]]] = {}
    for name, shape in base.shapes.items():
        if (layer := layer_of(name)) is not None:
            kind = kinds.setdefault(layer, {("window", windows[layer])})
            kind.add((name.split(f".{layer}.", 1)[1], shape))
    firsts = [layer for layer in sorted(kinds) if not any(kinds[layer] == kinds[other] for other in range(layer))]
    least = 2 if base.num_parameters <= MAX_PARAMETERS_FOR_TWO_LAYERS else 1
    num_layers = min(max(firsts[-1] + 1, least), len(kinds)) if firsts else base.config.num_hidden_layers
    config = shortened(base.config, num_layers)
    tensors = {name: tensor for name, tensor in base.tensors.items() if (layer_of(name) or 0) < num_layers}
    packed = {name: weight for name, weight in base.packed.items() if (layer_of(name) or 0) < num_layers}
    return replace(base, config=config, tensors=tensors, packed=packed)


def layer_of(name: str) -> int | None:
    found = re.search(r"\.layers\.(\d+)\.", name)
    return int(found[1]) if found else None


class Trial:
    """Slot tables: one for prefill in changing mixtures; two for decode in which every slot holds a prompt, one of them
    with a few long prompts."""

    def __init__(self, base: BaseModel, sizes: Sizes, max_slots: int, is_adapted: bool) -> None:
        self._rng = np.random.default_rng(0)
        self._base, self._sizes, self._max_slots = base, sizes, max_slots
        model = AdaptedModel(base)
        self._module = model.for_trial_pass() if is_adapted else model.for_pass(None)
        self._lengths = [length for length in LENGTHS if length < base.context_window]
        self._prompts = [self._rng.integers(0, base.config.vocab_size, length) for length in self._lengths]
        # Prompts of which every piece is known.
        self._learned: list[int] = []
        num_short = min(NUM_SHORT, len(self._lengths))
        short = self._rng.integers(0, num_short, max_slots)
        mixed = short.copy()
        for number, slot in enumerate(slot for slot in LONG_SLOTS if slot < max_slots):
            mixed[slot] = len(self._lengths) - 1 - number % NUM_LONG
        self._table = self._new_table(MAX_PROMPTS, self._lengths[-1])
        self._filled = (
            (self._new_table(max_slots, self._lengths[num_short - 1]), short),
            (self._new_table(max_slots, self._lengths[-1]), mixed),
        )

    def learn(self, size: int, expected: Answers) -> None:
        """Every prompt that this size can prefill, from its first token on; fills the slots for decoding with them."""
        self._learned = [
            index
            for index in range(len(self._lengths))
            if max(len(piece.tokens) for piece in self._pieces(index)) <= size
        ]
        self._prefill_agrees(size, [(index, self._pieces(index)) for index in self._learned], expected)
        self._fill_tables(expected)

    def _fill_tables(self, expected: Answers) -> None:
        for table, held in self._filled:
            for slot, index in enumerate(held):
                if index in self._learned:
                    self._copy(expected, int(index), self._lengths[index], table, slot)

    def agrees(self, size: int, expected: Answers) -> bool:
        """Whether all numbers are the expected ones; if so, adds what was not known yet."""
        known = dict(expected)
        if not self._agrees(size, known):
            return False
        expected.update(known)
        return True

    def _agrees(self, size: int, expected: Answers) -> bool:
        num_draws = NUM_DRAWS if size < LARGE else NUM_DRAWS_OF_LARGE
        if not all(self._prefill_agrees(size, self._draw(size), expected) for _ in range(num_draws)):
            return False
        if size > self._max_slots:
            return True
        every, chosen = np.arange(size), np.sort(self._rng.choice(self._max_slots, size, replace=False))
        return all(
            self._decode_agrees(table, held, slots, expected)
            for table, held in self._filled
            for slots in (every, chosen)
        )

    def _prefill_agrees(self, size: int, drawn: list[tuple[int, list[Piece]]], expected: Answers) -> bool:
        for slot, (index, pieces) in enumerate(drawn):
            self._copy(expected, index, pieces[0].start, self._table, slot)
        outputs = self._prefill(drawn, size)
        for slot, (index, pieces) in enumerate(drawn):
            for piece in pieces:
                computed = self._cached(self._table, slot, piece.start, piece.end)
                if piece.is_last:
                    computed += outputs[slot]
                if not is_expected(expected, ("prefill", index, piece.start), computed):
                    return False
        return True

    def _decode_agrees(self, table: SlotCache, held: np.ndarray, slots: np.ndarray, expected: Answers) -> bool:
        indices = [int(index) for index in held[slots]]
        tokens = np.array([self._prompts[index][0] for index in indices])
        positions = np.array([self._lengths[index] for index in indices])
        prefixes = [self._chunks(index) for index in indices]
        logits = self._forward(table, len(slots)).decode(self._module, slots, tokens, positions, prefixes)
        outputs = self._outputs(logits, indices)
        for slot, index, output in zip(slots, indices, outputs, strict=True):
            position = self._lengths[index]
            computed = [*self._cached(table, int(slot), position, position + 1), *output]
            if not is_expected(expected, ("decode", index, position), computed):
                return False
        return True

    def _prefill(self, drawn: list[tuple[int, list[Piece]]], size: int) -> dict[int, list[Tensor]]:
        """Prompts in slots 0 … n - 1, in as many passes as they need; by slot, what was computed of its last token."""
        forward = self._forward(self._table, size)
        waiting = [replace(piece, slot=slot) for slot, (_, pieces) in enumerate(drawn) for piece in pieces]
        outputs: dict[int, list[Tensor]] = {}
        while waiting:
            taken, room = [], size
            while waiting and len(waiting[0].tokens) <= room:
                taken.append(waiting.pop(0))
                room -= len(taken[-1].tokens)
            logits = forward.prefill(self._module, taken)
            slots = [piece.slot for piece in taken if piece.is_last]
            if slots:
                outputs |= zip(slots, self._outputs(logits, [drawn[slot][0] for slot in slots]), strict=False)
        return outputs

    def _draw(self, size: int) -> list[tuple[int, list[Piece]]]:
        """Prompts in random order, about as many as fill a pass; of a long one a single piece. One is far from the
        start where there is room."""
        drawn, room = [], size
        far = [self._learned[-1 - int(self._rng.integers(2)) % len(self._learned)]] if size > SHORT_PIECE else []
        for index in [*far, *self._rng.choice(self._learned, size)]:
            pieces = self._pieces(int(index))
            if len(drawn) < len(far):
                pieces = pieces[-1:]
            elif self._lengths[index] > LONG_PROMPT:
                pieces = [pieces[int(self._rng.integers(len(pieces)))]]
            num_tokens = sum(len(piece.tokens) for piece in pieces)
            if num_tokens <= room and len(drawn) < MAX_PROMPTS:
                drawn.append((int(index), pieces))
                room -= num_tokens
        return [drawn[place] for place in self._rng.permutation(len(drawn))]

    def _chunks(self, index: int) -> list[tuple[int, int]]:
        """Names of the chunks that requests with this prompt share."""
        is_whole_prompt = self._lengths[index] != LENGTHS[ANSWERED]
        num_chunks = self._lengths[index] // CHUNK if is_whole_prompt else 0
        return [(index, chunk) for chunk in range(num_chunks)]

    def _pieces(self, index: int) -> list[Piece]:
        prompt = self._prompts[index]
        return cut(prompt, 0, 0, len(prompt))

    def _copy(self, expected: Answers, index: int, end: int, table: SlotCache, slot: int) -> None:
        """Keys and values of a prompt's pieces before `end`."""
        for piece in self._pieces(index):
            if piece.start < end:
                known = expected[("prefill", index, piece.start)]
                cached = self._cached(table, slot, piece.start, piece.end)
                for tensor, numbers in zip(cached, known, strict=False):
                    tensor.copy_(numbers)

    def _cached(self, table: SlotCache, slot: int, start: int, end: int) -> list[Tensor]:
        return [tensor[slot, :, start:end] for tensor in (*table.keys, *table.values)]

    def _new_table(self, num_slots: int, num_tokens: int) -> SlotCache:
        """A table with room for one more token."""
        table = SlotCache(self._base.config, self._base.dtype, self._base.device)
        table.resize(num_slots, num_tokens + 1)
        return table

    def _forward(self, table: SlotCache, size: int) -> Forward:
        return Forward(table, replace(self._sizes, allowed=(size,)), self._base.device)

    def _outputs(self, logits: Tensor, indices: list[int]) -> list[list[Tensor]]:
        """Row by row, for the rows of these prompts: logits, and the log-probability of what is sampled."""
        seeds = [*indices, *[0] * (len(logits) - len(indices))]
        _, logprobs = sample(logits, [1.0] * len(logits), uniforms(seeds, [0] * len(logits)))
        return [[logits[row], torch.tensor(logprobs[row], dtype=torch.float32)] for row in range(len(indices))]


def is_expected(expected: Answers, key: Key, numbers: list[Tensor]) -> bool:
    if key not in expected:
        expected[key] = [tensor.clone() for tensor in numbers]
    return all(torch.equal(known, tensor) for known, tensor in zip(expected[key], numbers, strict=True))
