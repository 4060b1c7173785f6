"""Continuous batching: which tokens the next forward pass takes. Runs in the engine's thread; starts none itself.

waiting -> (a slot) -> prefill, piece by piece -> decode, one token a pass -> done.
"""

import math
import time
from collections import deque
from dataclasses import dataclass
from itertools import takewhile
from threading import Condition

import numpy as np
from torch import Tensor

from temper_gpu.engine.embedded.distribution import shape_rows
from temper_gpu.engine.embedded.forward import Forward
from temper_gpu.engine.embedded.kv_cache import SlotCache
from temper_gpu.engine.embedded.pieces import Piece, cut
from temper_gpu.engine.embedded.policies import Policies
from temper_gpu.engine.embedded.prefix_cache import PrefixCache
from temper_gpu.engine.embedded.requests import Sequence
from temper_gpu.engine.embedded.sampling import sample, uniforms
from temper_gpu.engine.embedded.settings import EmbeddedSettings
from temper_gpu.engine.embedded.sizes import Sizes
from temper_gpu.engine.embedded.slots import Slots
from temper_gpu.engine.embedded.trials import Trials
from temper_gpu.engine.interface import DeadlinePassed, GenerationRequest
from temper_gpu.failures import TemperError
from temper_gpu.model.models import BaseModel

# Longest delay until a passed deadline or a lost caller is noticed.
SWEEP_S = 0.05


@dataclass
class EngineCounters:
    """Since the engine was made; for /health and benches."""

    requests: int = 0
    prefill_passes: int = 0
    decode_passes: int = 0
    # Computed; the tokens of prompts that were not, because a prompt began alike, are `prefix_tokens`.
    prompt_tokens: int = 0
    prefix_tokens: int = 0
    # Requests that began with such tokens.
    prefix_hits: int = 0
    sampled_tokens: int = 0
    # Requests that began again because there was no room for their next token.
    preemptions: int = 0
    forward_s: float = 0.0
    device_wait_s: float = 0.0


class Scheduler:
    def __init__(self, base: BaseModel, sizes: Sizes, policies: Policies, settings: EmbeddedSettings) -> None:
        self.counters = EngineCounters()
        # Guards `_waiting` and `_last_arrival`; everything else belongs to the engine's thread.
        self.arrived = Condition()
        self._waiting: dict[str | None, deque[Sequence]] = {}
        self._last_arrival = 0.0
        self._next_sweep = 0.0
        # Policies, the one whose turn it is last.
        self._turns: deque[str | None] = deque()
        self._admitting: Sequence | None = None
        self._trials = Trials()
        # Length in tokens, since a pass ran out of memory: a proof that requests up to it fit now.
        self.longest_answered = 0
        self._settings = settings
        self._sizes = sizes
        self._policies = policies
        cache = SlotCache(base.config, base.dtype, base.device)
        self._cache = cache
        self._prefixes = PrefixCache(cache, settings.kept_prefix_bytes)
        self._forward = Forward(cache, sizes, base.device)
        self._slots = Slots(
            cache,
            self._prefixes,
            sizes,
            sizes.most_slots(settings.max_slots),
            settings.kv_cache_bytes,
            base.context_window,
        )

    # ---- any thread

    def enqueue(self, sequence: Sequence) -> None:
        """The sequence's policy has to be in use for it; it is left again when the sequence is done."""
        with self.arrived:
            self._waiting.setdefault(sequence.policy, deque()).append(sequence)
            self._last_arrival = time.monotonic()
            self.arrived.notify()

    def num_waiting(self) -> int:
        return sum(map(len, tuple(self._waiting.values()))) + len(self._trials)

    def num_running(self) -> int:
        return len(self._slots.sequences)

    def kv_cache_usage(self) -> float:
        """The share of the key-value cache that holds tokens of running requests."""
        num_bytes = int(self._slots.positions.sum()) * self._cache.bytes_per_token
        return num_bytes / self._settings.kv_cache_bytes

    def num_prefix_bytes(self) -> int:
        return self._prefixes.num_bytes

    @property
    def max_tokens(self) -> int:
        return self._slots.max_tokens

    def bytes_of(self, num_tokens: int) -> int:
        return self._slots.bytes_of(num_tokens)

    def has_work(self) -> bool:
        return bool(self._slots.sequences or self._trials) or any(self._waiting.values())

    # ---- the engine's thread

    def step(self) -> None:
        """One forward pass, for the policies whose turn it is."""
        self._admitting = None
        self.drop_abandoned()
        self._gather()
        self._admit()
        sequences = self._sequences_in_turn()
        if not sequences:
            return
        started = time.perf_counter()
        if any(not sequence.is_prefilled for sequence in sequences):
            self._prefill([sequence for sequence in sequences if not sequence.is_prefilled])
        else:
            self._decode([sequence for sequence in sequences if sequence.is_prefilled])
        self.counters.forward_s += time.perf_counter() - started

    def drop_abandoned(self) -> None:
        """Requests past their deadline, or whose caller went away; looked for now and then only."""
        now = time.monotonic()
        if now < self._next_sweep:
            return
        self._next_sweep = now + SWEEP_S
        with self.arrived:
            for policy, queue in self._waiting.items():
                if any(sequence.is_abandoned(now) for sequence in queue):
                    self._waiting[policy] = deque(s for s in queue if not self._drop_if_abandoned(s, now))
        self._trials.drop(lambda sequence: self._drop_if_abandoned(sequence, now))
        for sequence in [s for s in self._slots.sequences.values() if s.is_abandoned(now)]:
            self._drop_if_abandoned(sequence, now)

    def take_longest(self) -> Sequence | None:
        """Frees the slot table after a pass ran out of memory, and removes the request that needs most of it.

        The others return to the head of their queues. They start again at their prompts, because parts of the pass may
        have been written and their keys are gone, and sample the same tokens as before. The caller must fail the
        removed request.
        """
        with self.arrived:
            running = self._slots.clear()
            candidates = [*running, *([self._admitting] if self._admitting else [])]
            if not candidates:
                return None
            # The youngest of the longest has waited least.
            longest = max(candidates, key=lambda sequence: (sequence.num_tokens, sequence.created))
            if longest is self._admitting:
                self._withdraw(longest)
            for sequence in reversed(running):
                sequence.begin_again()
                if sequence is not longest:
                    self._waiting.setdefault(sequence.policy, deque()).appendleft(sequence)
            self._admitting = None
            self.longest_answered = 0
        self._policies.leave(longest.policy)
        return longest

    def _withdraw(self, sequence: Sequence) -> None:
        """Removes what waits for a slot, or to be repeated alone."""
        if not self._trials.withdraw(sequence):
            self._waiting[sequence.policy].remove(sequence)

    def fail_all(self, error: BaseException) -> None:
        """Fails all waiting and running requests."""
        with self.arrived:
            waiting = [sequence for queue in self._waiting.values() for sequence in queue]
            self._waiting.clear()
        for sequence in (*waiting, *self._trials.clear(), *self._slots.sequences.values()):
            sequence.fail(error)

    def take_culprit(self) -> Sequence | None:
        """Frees the slot table after a failed pass. Its requests run once more, each alone. One that was alone already
        is removed and returned: the caller must fail it."""
        culprit = self._trials.after_failure(self._slots.clear())
        if culprit is not None:
            self._policies.leave(culprit.policy)
        return culprit

    def is_sound(self) -> bool:
        """Whether the engine still answers a plain request. Its slot table has to be empty."""
        plain = Sequence(None, GenerationRequest((0,), 1, 0.0, 0), math.inf, lambda token_ids: "")
        try:
            if self._take_slot(plain):
                self._prefill([plain])
        except Exception:
            return False
        return plain.future.done()

    def _drop_if_abandoned(self, sequence: Sequence, now: float) -> bool:
        if not sequence.is_abandoned(now):
            return False
        state = "waiting for a slot" if sequence.slot < 0 else f"after {len(sequence.token_ids)} tokens"
        sequence.fail(
            DeadlinePassed(
                f"an answer must be ready by its deadline, but the deadline passed {state}; allow more time or send "
                "fewer requests at once"
            )
        )
        self._leave(sequence)
        return True

    def _leave(self, sequence: Sequence, is_clean: bool = True) -> None:
        if sequence.slot >= 0:
            self._slots.release(sequence, is_clean)
        self._policies.leave(sequence.policy)

    def _gather(self) -> None:
        """While requests come in one after another, a fuller pass is worth a moment."""
        pause, end = self._settings.gather_pause_s, time.monotonic() + self._settings.gather_s
        while self._waiting and time.monotonic() - self._last_arrival < pause and time.monotonic() < end:
            time.sleep(pause)

    def _admit(self) -> None:
        """Assigns slots to waiting requests in turn by policy; if the first one does not fit, no other overtakes it."""
        if self._trials.admit(self._slots.sequences.values(), self._take_slot):
            return
        with self.arrived:
            self._waiting = {policy: queue for policy, queue in self._waiting.items() if queue}
            while self._waiting:
                policy, queue = next(iter(self._waiting.items()))
                if not self._take_slot(queue[0]):
                    break
                queue.popleft()
                # Reinserted, so that it comes after the others in the next pass, too.
                del self._waiting[policy]
                if queue:
                    self._waiting[policy] = queue

    def _take_slot(self, sequence: Sequence) -> bool:
        self._admitting = sequence  # known to `take_longest` if the table has no room to grow
        has_slot = self._slots.take(sequence)
        self._admitting = None
        return has_slot

    def _sequences_in_turn(self) -> list[Sequence]:
        """Sequences of the policy that computes the next pass, by slot. Policies take turns."""
        sequences = self._slots.sequences.values()
        present = dict.fromkeys(sequence.policy for sequence in sequences)
        self._turns = deque([policy for policy in self._turns if policy in present])
        self._turns.extend(policy for policy in present if policy not in self._turns)
        if not self._turns:
            return []
        self._turns.rotate(-1)
        return [sequence for sequence in sequences if sequence.policy == self._turns[-1]]

    def _prefill(self, sequences: list[Sequence]) -> None:
        chosen = self._pieces(sequences)
        model = self._policies.for_pass(sequences[0].policy)
        logits_SV = self._forward.prefill(model, [piece for _, piece in chosen])
        self.counters.prefill_passes += 1
        for sequence, piece in chosen:
            self._advance(sequence, piece.end)
            self.counters.prompt_tokens += len(piece.tokens)
        if self._prefixes.max_bytes:
            self._share(sequences, chosen)
        ends = [sequence.keys[-1] for sequence, piece in chosen if piece.is_last]
        completed = [sequence for sequence in sequences if sequence.is_prefilled]
        if completed:
            self._sample(completed, logits_SV, [ends.index(sequence.keys[-1]) for sequence in completed])

    def _pieces(self, sequences: list[Sequence]) -> list[tuple[Sequence, Piece]]:
        """The pieces of one pass: whole pieces, first come, first served. Duplicates wait for the first."""
        waiting: list[tuple[Sequence, Piece]] = []
        num_tokens = 0
        taken: set[tuple[bytes, bool]] = set()
        for sequence in sequences:
            if num_tokens < self._sizes.largest:
                new = self._new_pieces(sequence, self._sizes.largest - num_tokens, taken)
                waiting += [(sequence, piece) for piece in new]
                num_tokens += sum(len(piece.tokens) for piece in new)
        room = self._sizes.worthwhile(num_tokens)
        chosen: list[tuple[Sequence, Piece]] = []
        for sequence, piece in waiting:
            room -= len(piece.tokens)
            if room < 0 and chosen:
                break
            chosen.append((sequence, piece))
        return chosen

    def _new_pieces(self, sequence: Sequence, max_tokens: int, taken: set[tuple[bytes, bool]]) -> list[Piece]:
        """The prompt's remaining pieces after the cached prefix, up to one that this pass computes for another
        request."""
        if not self._prefixes.max_bytes:
            return cut(sequence.prompt, sequence.slot, sequence.computed, max_tokens)
        # The last piece is always computed: its last token is sampled from.
        wanted = sequence.keys[sequence.computed // sequence.piece_size : -1]
        self._reuse(sequence, self._prefixes.load(wanted, sequence.slot, sequence.computed))
        pieces = cut(sequence.prompt, sequence.slot, sequence.computed, max_tokens)
        new = list(takewhile(lambda piece: sequence.part(piece.start) not in taken, pieces))
        taken.update(sequence.part(piece.start) for piece in new)
        return new

    def _share(self, sequences: list[Sequence], chosen: list[tuple[Sequence, Piece]]) -> None:
        """Keeps computed pieces, and copies them to sequences whose prompts continue with the same pieces."""
        computed = {sequence.part(piece.start): piece for sequence, piece in chosen}
        for (key, _), piece in computed.items():
            self._prefixes.keep(key, piece)
        for sequence in dict.fromkeys(sequence for sequence, _ in chosen):
            self._prefixes.touch(sequence.keys)
        for sequence in sequences:
            while not sequence.is_prefilled and (piece := computed.get(sequence.part(sequence.computed))):
                self._cache.copy(piece.slot, sequence.slot, piece.start, piece.end)
                self._reuse(sequence, piece.end)

    def _reuse(self, sequence: Sequence, end: int) -> None:
        if sequence.computed == 0 and end > 0:
            self.counters.prefix_hits += 1
        self.counters.prefix_tokens += end - sequence.computed
        self._advance(sequence, end)

    def _advance(self, sequence: Sequence, end: int) -> None:
        sequence.computed = self._slots.positions[sequence.slot] = end

    def _decode(self, sequences: list[Sequence]) -> None:
        slots = self._slots
        sequences = self._make_room(sequences)
        if not sequences:
            return
        slots.compact()
        sequences = sorted(sequences, key=lambda sequence: sequence.slot)
        taken = np.array([sequence.slot for sequence in sequences])
        model = self._policies.for_pass(sequences[0].policy)
        prefixes = [sequence.chunks for sequence in sequences]
        logits_SV = self._forward.decode(model, taken, slots.tokens[taken], slots.positions[taken], prefixes)
        slots.positions[taken] += 1
        self.counters.decode_passes += 1
        self._sample(sequences, logits_SV, list(range(len(sequences))))

    def _make_room(self, sequences: list[Sequence]) -> list[Sequence]:
        """Makes room for one more token each. If necessary the youngest requests release their slots and restart later.
        The oldest stays, so that each request finishes in the end. Returns those that stay."""
        positions = self._slots.positions
        while not self._slots.has_room(max((int(positions[s.slot]) + 1 for s in sequences), default=0)):
            youngest = max(self._slots.sequences.values(), key=lambda sequence: sequence.created)
            self._slots.release(youngest, is_clean=True)
            youngest.begin_again()
            youngest.was_preempted = True
            with self.arrived:
                self._waiting.setdefault(youngest.policy, deque()).appendleft(youngest)
            self.counters.preemptions += 1
            sequences = [sequence for sequence in sequences if sequence is not youngest]
        return sequences

    def _sample(self, sequences: list[Sequence], logits_SV: Tensor, rows: list[int]) -> None:
        """Draws one token for each sequence from its row. Padding rows are drawn too, to keep the shape one of few."""
        if rows != list(range(len(rows))):
            padding = [0] * (self._sizes.at_least(len(rows)) - len(rows))
            logits_SV = logits_SV[rows + padding]
        padding = [0] * (len(logits_SV) - len(rows))
        requests = [sequence.request for sequence in sequences]
        temperatures = [*(request.temperature for request in requests), *[1.0] * len(padding)]
        indices = [*(len(sequence.token_ids) for sequence in sequences), *padding]
        chance = uniforms([*(request.seed for request in requests), *padding], indices)
        shape_rows(logits_SV, enumerate(sequences))
        token_ids, logprobs = sample(logits_SV, temperatures, chance)
        self.counters.sampled_tokens += len(sequences)
        for sequence, token_id, logprob in zip(sequences, token_ids, logprobs, strict=False):
            self._accept(sequence, token_id, logprob)

    def _accept(self, sequence: Sequence, token_id: int, logprob: float) -> None:
        if math.isnan(logprob):
            policy = sequence.policy or "the base model"
            sequence.fail(
                TemperError("LossNotFinite", f"logits must be finite, {policy} gives NaN; train from an earlier step")
            )
            self._leave(sequence, is_clean=False)
            return
        self._slots.tokens[sequence.slot] = token_id
        if reason := sequence.add(token_id, logprob):
            self._leave(sequence)
            self.counters.requests += 1
            self.longest_answered = max(self.longest_answered, sequence.num_tokens)
            sequence.finish(reason)
