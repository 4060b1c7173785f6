"""Proof that vLLM samples from an adapter: a fixed probe, and the tokens that vLLM samples after it, are scored by vLLM
and by the trainer's own weights.

There are two checks. Both scores must agree, token by token, within the rounding of the model's type. If the adapter
changes more than that, vLLM must differ from the base model as the trainer's weights with the adapter do. The second
check covers adapters that are too small for the first. The probe is scored at temperature 1, sampled tokens at their
own temperature: log-probabilities must be those of that distribution.

Shapes: T tokens of the probe (but the first) and of what vLLM sampled after it, V vocabulary.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from temper_gpu.engine.interface import AdapterSource, GenerationRequest
from temper_gpu.engine.vllm import server
from temper_gpu.engine.vllm.client import Address, Client
from temper_gpu.engine.vllm.server import advice
from temper_gpu.failures import TemperError
from temper_gpu.model.change_kept import ChangeKept
from temper_gpu.model.explanations import instantiate
from temper_gpu.model.lora import Adapter, dtype_name
from temper_gpu.model.models import BaseModel

PROBE_TOKENS = 48
SAMPLED_TOKENS = 24
TEMPERATURE = 0.7
PROBE_S = 300.0


@dataclass(frozen=True)
class Tolerance:
    """Bounds for log-probabilities of the same weights, in nats, and for an adapter's change: the noise up to which it
    can be judged, and the share of it that must be found."""

    # On average over a probe: more is another model.
    mean: float
    # Bound for single tokens, whose noise hides smaller effects.
    noise: float
    # `noise` over the size of the whole change.
    most_noise: float
    least_share: float


# Measured with vLLM 0.32 on a CPU (docs/internal/engine.md says what), with room for larger models. Below float32 an
# adapter's measured change includes the trainer's own rounding, so it must be a few times larger than that; and vLLM
# adds an adapter's product to one that is rounded already, which loses part of a small one.
TOLERANCES = {"float32": Tolerance(2e-3, 1e-4, 0.15, 0.5), "bfloat16": Tolerance(0.15, 0.06, 0.045, 0.2)}


class Prover:
    """Proves servers of one base model. A server that computes something else raises PolicyMismatch."""

    def __init__(self, base: BaseModel, on_proof: Callable[[], None]) -> None:
        self._base = base
        self._on_proof = on_proof
        # Fixed, and of tokens that the tokenizer knows: a model may have places for more.
        num_tokens = min(len(base.tokenizer), int(base.config.vocab_size))
        generator = torch.Generator().manual_seed(0)
        self._probe = torch.randint(0, num_tokens, (PROBE_TOKENS,), generator=generator).tolist()

    def prove_base(self, client: Client, name: str) -> str | None:
        """`name` is the server's. Returns its fingerprint."""
        token_ids, engine_T, fingerprint = self._ask(client, name)
        trainer_T = score(self._base, None, token_ids)
        require_temperature(self._base, client.address, engine_T, trainer_T, score(self._base, None, token_ids, 1.0))
        require_base(self._base, client.address, engine_T, trainer_T)
        self._on_proof()
        return fingerprint

    def prove_adapter(self, client: Client, source: AdapterSource) -> None:
        token_ids, engine_T, _ = self._ask(client, source.sha256)
        adapter = source.read()
        if not isinstance(adapter, Adapter):
            raise TypeError(f"{source.sha256} is no adapter, and had no folder to be loaded from")
        adapted_T, plain_T = (score(self._base, each, token_ids) for each in (adapter, None))
        require_adapter(self._base, client.address, source.sha256, engine_T, adapted_T, plain_T)
        self._on_proof()

    def _ask(self, client: Client, name: str) -> tuple[list[int], Tensor, str | None]:
        request = GenerationRequest(tuple(self._probe), SAMPLED_TOKENS, TEMPERATURE, 0)
        answer = server.complete(client, name, self._probe, request, PROBE_S, is_probe=True)
        if answer.prompt_logprobs is None or len(answer.token_ids) != SAMPLED_TOKENS:
            raise TemperError(
                "EngineFailed",
                f"{client.address.server} must score a prompt and sample {SAMPLED_TOKENS} tokens, but gave "
                f"{len(answer.token_ids)}; retry",
            )
        logprobs = [*answer.prompt_logprobs, *answer.logprobs]
        scored_T = torch.tensor(logprobs, dtype=torch.float64)
        return [*self._probe, *answer.token_ids], scored_T, answer.fingerprint


@torch.no_grad()
def score(base: BaseModel, adapter: Adapter | None, token_ids: list[int], temperature: float = TEMPERATURE) -> Tensor:
    """Scores by the trainer's weights, at the probe's temperatures, or at another one than that of sampled tokens."""
    model = instantiate(base, adapter)
    ids_1T = torch.tensor([token_ids], device=base.weights_on)
    logits_TV = model(input_ids=ids_1T, use_cache=False).logits[0, :-1].float()
    logits_TV[PROBE_TOKENS - 1 :] /= temperature
    return logits_TV.log_softmax(-1).gather(1, ids_1T[0, 1:, None])[:, 0].double().cpu()


def require_temperature(base: BaseModel, address: Address, engine_T: Tensor, trainer_T: Tensor, raw_T: Tensor) -> None:
    """Requires log-probabilities after temperature, not before; both are equally near on the prompt."""
    tolerance = TOLERANCES[dtype_name(base.dtype)]
    found = change_found(engine_T, raw_T, trainer_T, tolerance)
    prompt_distance = mean_distance(engine_T[: PROBE_TOKENS - 1], trainer_T[: PROBE_TOKENS - 1])
    if prompt_distance <= tolerance.mean and found.noise <= tolerance.most_noise and (found.share or 0) > 0.5:
        flag = "--logprobs-mode=processed_logprobs"
        raise TemperError(
            "PolicyMismatch",
            f"{address.server} must tell log-probabilities after temperature, but at temperature {TEMPERATURE} those "
            f"that it tells are of temperature 1 (the prompt's are right); start it with {flag}",
        )


def require_base(base: BaseModel, address: Address, engine_T: Tensor, trainer_T: Tensor) -> None:
    tolerance = TOLERANCES[dtype_name(base.dtype)]
    distance = mean_distance(engine_T, trainer_T)
    if not distance <= tolerance.mean:
        raise TemperError(
            "PolicyMismatch",
            f"{address.server} must serve the weights of {base.name} that are trained, but over {len(engine_T)} "
            f"tokens its log-probabilities are {distance:.4g} nats off the trainer's on average, which may be "
            f"{tolerance.mean:g} in {dtype_name(base.dtype)}; {same_weights(base, address)}",
        )


def same_weights(base: BaseModel, address: Address) -> str:
    if address.url is None:
        return "point the name at one folder, and restart the GPU worker"
    dtype = dtype_name(base.dtype)
    return f"start it with these weights and --dtype={dtype}, or pass the --base-model and --dtype that it serves"


def require_adapter(
    base: BaseModel, address: Address, sha256: str, engine_T: Tensor, adapted_T: Tensor, plain_T: Tensor
) -> None:
    tolerance = TOLERANCES[dtype_name(base.dtype)]
    distance = mean_distance(engine_T, adapted_T)
    found = change_found(engine_T, adapted_T, plain_T, tolerance)
    share = found.share or 0.0
    if distance <= tolerance.mean and (found.noise > tolerance.most_noise or share >= tolerance.least_share):
        return
    is_plain = mean_distance(engine_T, plain_T) < distance
    cause = "it answers as the base model does, without an adapter" if is_plain else "it answers as another model would"
    raise TemperError(
        "PolicyMismatch",
        f"{address.server} must sample from the adapter {sha256}, but over {len(engine_T)} tokens its "
        f"log-probabilities are {distance:.4g} nats off the trainer's on average, which may be {tolerance.mean:g} in "
        f"{dtype_name(base.dtype)}, and of what the adapter changes {share:.0%} is found, which must be "
        f"{tolerance.least_share:.0%}: {cause}; {advice(address)}, and if that does not help, pass --dtype float32",
    )


def change_found(engine_T: Tensor, adapted_T: Tensor, plain_T: Tensor, tolerance: Tolerance) -> ChangeKept:
    kept = ChangeKept()
    kept.add(adapted_T - plain_T, engine_T - plain_T, tolerance.noise)
    return kept


def mean_distance(left_T: Tensor, right_T: Tensor) -> float:
    return float((left_T - right_T).abs().mean())
