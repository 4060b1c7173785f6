"""The policy in training: a model, what of it trains (trained.py), and its optimizer (optimizers.py). Modules are made
once; steps load values in place.

Shapes: B rows, T tokens, N sampled tokens, D hidden size, V vocabulary.
"""

import logging
import math
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from hashlib import sha256
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from temper_gpu.contract import LoraConfig, OptimizerConfig
from temper_gpu.failures import TemperError
from temper_gpu.model.memory import free_bytes, is_out_of_memory
from temper_gpu.model.models import BaseModel
from temper_gpu.training.attention_inputs import attention_inputs, find_tree_kernel
from temper_gpu.training.full_parameters import FullParameters
from temper_gpu.training.head_scores import frozen_head_scores, is_frozen, plain_scores
from temper_gpu.training.lora_parameters import LoraParameters
from temper_gpu.training.optimizers import AdamW, OptimizerKind
from temper_gpu.training.packing import MicroBatch, Row, pack
from temper_gpu.training.ranks import ALONE, Ranks
from temper_gpu.training.recomputation import computed_again, is_recomputed
from temper_gpu.training.trained import Trained
from temper_gpu.training.tree_attention import TREE_ATTENTION
from temper_gpu.training.tree_kernel import Kernel, is_long_enough

# Upper bound of the logits that exist at a time (fp32: 256 MB). A whole prompt would need far more.
MAX_LOGITS = 1 << 26
_PROBE_TOKENS = 4
# Largest difference of hidden states between two ways to compute the same tokens, relative to their norm.
SAME_BOUND = 1e-3
SAME_BOUNDS = {torch.bfloat16: 0.05}

log = logging.getLogger(__name__)


class TokenScores(NamedTuple):
    """log π of each sampled token, and the entropy of the distribution that it was drawn from."""

    logprobs_N: Tensor
    entropy_N: Tensor


class TrainablePolicy:
    """The trainer alone uses a policy: it is not thread-safe, and its tensors are dirty during a step."""

    def __init__(
        self,
        base: BaseModel,
        lora: LoraConfig | None,
        ranks: Ranks = ALONE,
        optimizer: OptimizerKind = "adamw",
        scores_forward: bool | None = None,
    ) -> None:
        """`lora`: None trains all weights. `ranks`: each has a copy of what trains; rank 0 alone has the
        optimizer's state. `scores_forward`: whether the gradients of a frozen output head are found in the forward
        pass; None: on a GPU. Both give other last bits."""
        self.base = base
        self.lora = lora
        self.ranks = ranks
        # Seeds the adapter's dropout; None: nothing is dropped.
        self._dropout_seed: str | None = None
        self._trained: Trained = FullParameters(base) if lora is None else LoraParameters(base, lora, ranks)
        self._attention_of_rows = self.model.config._attn_implementation
        self._optimizer = AdamW(optimizer, self.parameters, self._trained.embeddings)
        is_asked = self.device.type == "cuda" if scores_forward is None else scores_forward
        # Models beside a fully trained one are compared with it, so all of them score alike.
        is_plain = lora is not None and not ranks.shards and self._logits_cap is None and is_frozen(self._head)
        self._scores_forward = is_asked and is_plain
        self._require_plain_head()

    @property
    def parameters(self) -> dict[str, nn.Parameter]:
        return self._trained.parameters

    @property
    def model(self) -> Any:
        return self._trained.model

    @property
    def device(self) -> torch.device:
        return self.base.device

    @property
    def dtype(self) -> torch.dtype:
        return self.base.dtype

    def load(self, tensors: Mapping[str, Tensor], optimizer: Mapping[str, Tensor]) -> None:
        self._trained.require_same("the checkpoint that a step trains", tensors)
        with torch.no_grad():
            for name, parameter in self.parameters.items():
                parameter.copy_(tensors[name])
            self._optimizer.load(optimizer)
        self.zero_grad()
        self._trained.updated()

    def with_adapter(self, tensors: Mapping[str, Tensor]) -> AbstractContextManager[None]:
        return self._trained.as_checkpoint(tensors)

    def adapter_tensors(self) -> dict[str, Tensor]:
        return {name: parameter.detach().cpu() for name, parameter in self.parameters.items()}

    def optimizer_tensors(self) -> dict[str, Tensor]:
        return self._optimizer.tensors()

    def without_adapter(self) -> AbstractContextManager[None]:
        return self._trained.as_base()

    @property
    def has_dropout(self) -> bool:
        return self.lora is not None and self.lora.dropout > 0

    @contextmanager
    def dropping(self, seed: str) -> Iterator[None]:
        """Turns the adapter's dropout on for the passes inside, if it has one. What a micro-batch drops follows from
        the seed and its tokens, whichever rank computes it."""
        self._dropout_seed = seed if self.has_dropout else None
        try:
            with self._trained.dropping():
                yield
        finally:
            self._dropout_seed = None

    def log_probabilities(self, batch: MicroBatch, trains_entropy: bool = False) -> TokenScores:
        """Computes log-softmax in fp32, after temperature. Only tokens that predict a sampled one reach the output
        head."""
        scores = self._score(batch, trains_entropy)
        if not torch.is_grad_enabled():
            self._trained.weights.end_pass()
        return scores

    def _score(self, batch: MicroBatch, trains_entropy: bool) -> TokenScores:
        hidden_ND = self._hidden_states(batch).index_select(0, batch.sources_N)
        chunk = max(1, MAX_LOGITS // self._head.weight.shape[0])
        if batch.scored_at_once is not None:
            chunk = min(chunk, batch.scored_at_once)
        inputs = (hidden_ND, batch.targets_N, batch.temperatures_N, trains_entropy, chunk)
        if self._scores_forward:
            return TokenScores(*frozen_head_scores(self._head.weight, *inputs))
        return TokenScores(*plain_scores(self._logits, *inputs))

    @property
    def _head(self) -> Any:
        return self.model.get_output_embeddings()

    def _logits(self, hidden_ND: Tensor) -> Tensor:
        """Logits of the output head, capped if the model's config says so (Gemma 2)."""
        logits_NV, cap = self._head(hidden_ND), self._logits_cap
        return logits_NV if cap is None else (logits_NV / cap).tanh() * cap

    @property
    def _logits_cap(self) -> float | None:
        return getattr(self.base.config, "final_logit_softcapping", None)

    def recomputes(self, num_tokens: int) -> bool:
        """Whether the backward pass recomputes each layer, a third more work, instead of keeping all activations. The
        bits are the same."""
        free = free_bytes(self.device)
        return free is not None and is_recomputed(num_tokens * self._trained.saved_bytes_per_token, free, self.device)

    def _hidden_states(self, batch: MicroBatch) -> Tensor:
        """[S, D] of the predicting tokens."""
        decoder = self.model.get_decoder()
        is_recomputed = self.recomputes(batch.token_ids_BT.numel())
        self._trained.weights.begin_pass()
        # The setting stays until the next pass, because recomputed layers read it too.
        self.model.config._attn_implementation = (
            self._attention_of_rows if batch.attention.is_chains else TREE_ATTENTION
        )
        with self._drawing(batch), computed_again(decoder.layers if is_recomputed else ()):
            hidden = decoder(
                input_ids=batch.token_ids_BT,
                position_ids=batch.positions_BT,
                use_cache=False,
                **self._attention_inputs(batch, is_recomputed),
            ).last_hidden_state.flatten(0, 1)
        self._trained.weights.end_decoder(hidden)
        return hidden.index_select(0, batch.predicting_S)

    @contextmanager
    def _drawing(self, batch: MicroBatch) -> Iterator[None]:
        """Seeds PyTorch's random numbers for one pass."""
        if self._dropout_seed is None:
            yield
            return
        digest = sha256(self._dropout_seed.encode() + batch.token_ids_BT.cpu().numpy().tobytes()).digest()
        gpus = [self.device] if self.device.type == "cuda" else []
        with torch.random.fork_rng(gpus):
            torch.manual_seed(int.from_bytes(digest[:8], "big", signed=True))
            yield

    def _attention_inputs(self, batch: MicroBatch, is_recomputed: bool) -> dict[str, Any]:
        is_tree = not batch.attention.is_chains and is_long_enough(batch.token_ids_BT.shape[1])
        kernel = self.tree_kernel if is_tree and self.base.attention != "eager" else None
        return attention_inputs(self.base, batch, is_recomputed, kernel)

    @cached_property
    def tree_kernel(self) -> Kernel | None:
        return find_tree_kernel(self.base)

    @cached_property
    def knows_trees(self) -> bool:
        """Whether the model computes a small tree like its rows. If not, because its code bypasses transformers'
        attention functions, rows are computed separately."""
        rows = [Row(ids, "attempt", [5], [0.0], [1.0], [0.0]) for ids in ([0, 1, 2, 3, 4, 5], [0, 1, 2, 6, 7, 5])]
        [plain], [tried] = (pack(rows, 1, 100, self.device, kind) for kind in ("rows", "tree"))
        try:
            with torch.no_grad():
                wanted_SD, found_SD = self._hidden_states(plain), self._hidden_states(tried)
            difference = float((found_SD - wanted_SD).norm() / wanted_SD.norm())
            reason = f"its numbers differ by {difference:.2g}"
        except (AttributeError, KeyError, RuntimeError, TypeError) as error:
            if is_out_of_memory(error):
                raise
            difference, reason = math.inf, repr(error)
        is_known = difference < SAME_BOUNDS.get(self.base.dtype, SAME_BOUND)
        if not is_known:
            otherwise = "shared prefixes are computed for each row"
            log.warning(otherwise, extra={"model": type(self.model).__name__, "reason": reason})
        return is_known

    def zero_grad(self) -> None:
        self._optimizer.zero_grad()

    def backward_only(self, scores: TokenScores) -> None:
        """Runs a backward pass that other ranks need, and restores the gradients."""
        gradients = [parameter.grad for parameter in self.parameters.values()]
        self.zero_grad()
        scores.logprobs_N.sum().backward()
        for parameter, gradient in zip(self.parameters.values(), gradients, strict=True):
            parameter.grad = gradient

    def add_gradients(self) -> None:
        self.ranks.add_gradients(self.parameters.values())

    def clip_gradients(self, max_norm: float) -> Tensor:
        """Scales the gradients to a global norm of at most `max_norm`, returns the norm before."""
        return nn.utils.clip_grad_norm_(list(self.parameters.values()), max_norm)

    @torch.no_grad()
    def adapter_norm(self) -> float:
        return nn.utils.get_total_norm(list(self.parameters.values())).item()

    def optimizer_step(self, config: OptimizerConfig, learning_rate: float) -> None:
        if self.ranks.rank == 0:
            self._optimizer.step(config, learning_rate)
        # The commit needs the memory of the gradients.
        self.zero_grad()
        self.ranks.broadcast(self.parameters.values())
        self._trained.updated()

    @torch.no_grad()
    def _require_plain_head(self) -> None:
        """Refuses architectures that scale their logits after the head, because scores would be those of another
        model."""
        self._trained.weights.begin_pass()
        ids_BT = torch.arange(_PROBE_TOKENS, device=self.device)[None]
        hidden_BTD = self.model.get_decoder()(input_ids=ids_BT, use_cache=False).last_hidden_state
        plain = self._logits(hidden_BTD)
        whole = self.model(input_ids=ids_BT, use_cache=False).logits
        self._trained.weights.end_pass()
        if not torch.allclose(plain, whole, rtol=1e-3, atol=1e-3):
            raise TemperError(
                "BadConfig",
                f"a model's logits must be those of its output head, but {type(self.model).__name__} "
                f"({self.base.name}) changes them; use a Qwen, Llama or Mistral model",
            )
