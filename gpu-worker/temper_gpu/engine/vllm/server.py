"""What Temper asks of a vLLM server: token ids in, token ids and log-probabilities out, adapters loaded and unloaded.

Every answer is held against its question: it must name the model and repeat the prompt that was asked.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from temper_gpu.engine.interface import Distribution, GenerationRequest
from temper_gpu.engine.vllm.client import Answer, Client, Unreachable
from temper_gpu.failures import TemperError

PARAMETERS = ("top_p", "top_k", "min_p", "presence_penalty", "frequency_penalty", "repetition_penalty")
# Loading reads a file and copies it to the device.
LOAD_S = 300.0


@dataclass(frozen=True)
class Completion:
    token_ids: list[int]
    logprobs: list[float]
    finish_reason: str
    # By token, the likeliest first; empty where nobody asked.
    top_logprobs: list[list[tuple[int, float]]]
    # Of the prompt's tokens but the first, at temperature 1; None where nobody asked.
    prompt_logprobs: list[float] | None


class LostAdapter(TemperError):
    """The server does not know the name: it was started anew, or somebody unloaded it."""

    def __init__(self, message: str) -> None:
        super().__init__("EngineFailed", message)


def complete(
    client: Client,
    model: str,
    prompt: list[int],
    request: GenerationRequest,
    timeout_s: float,
    is_probe: bool = False,
) -> Completion:
    body: dict[str, Any] = {
        "model": model,
        "prompt": prompt,
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        # Which tokens end an answer is said by Temper alone.
        "ignore_eos": True,
        "stop_token_ids": sorted(request.stop_token_ids),
        # A hint (calls.py). What is sampled again would not count into the penalties of an answer's tokens, nor into
        # what its schema allows next.
        "stop": [] if request.distribution.changes or request.schema is not None else list(request.stop),
        "logprobs": request.num_top_logprobs,
        "return_token_ids": True,
        # No seed: vLLM's CPU build ends with "CPU Generator does not use offset" when a prompt with one needs several
        # passes, and vLLM's samples depend on the rest of the batch in any case.
    }
    if request.distribution.changes:
        body |= parameters(request.distribution)
    if request.schema is not None:
        body["structured_outputs"] = {"json": json.loads(request.schema)}
    if request.num_top_logprobs:
        body["return_tokens_as_token_ids"] = True
    if is_probe:
        body["prompt_logprobs"] = 0
    answer = ask(client, "/v1/completions", body, timeout_s)
    if answer.status == 404:
        raise LostAdapter(f"vLLM must know {model}, but does not ({answer.message}); retry")
    return read_completion(require_ok(answer), model, prompt, request.num_top_logprobs)


def parameters(distribution: Distribution) -> dict[str, Any]:
    """By the same names, and in the same order of effects."""
    told = {name: getattr(distribution, name) for name in PARAMETERS}
    return {**told, "logit_bias": {str(token_id): bias for token_id, bias in distribution.logit_bias}}


def load_adapter(client: Client, sha256: str, folder: Path) -> None:
    require_ok(ask(client, "/v1/load_lora_adapter", {"lora_name": sha256, "lora_path": str(folder)}, LOAD_S))


def unload_adapter(client: Client, sha256: str) -> None:
    """One that is gone already is as good."""
    answer = ask(client, "/v1/unload_lora_adapter", {"lora_name": sha256}, LOAD_S)
    if answer.status != 404:
        require_ok(answer)


def require_listed(client: Client, sha256: str, folder: Path) -> None:
    """By its own list, the server has this folder under this name."""
    answer = require_ok(client_get(client, "/v1/models"))
    cards: Any = answer.body.get("data") if isinstance(answer.body, Mapping) else None
    listed = [str(card.get("id")) for card in cards or [] if card.get("root") == str(folder)]
    if listed != [sha256]:
        raise TemperError(
            "PolicyMismatch",
            f"vLLM must have the adapter {sha256} under this name, but lists its folder under "
            f"{', '.join(listed) or 'none'}; restart the GPU worker",
        )


def sleep(client: Client, timeout_s: float) -> None:
    require_ok(ask(client, "/sleep?level=1", {}, timeout_s))


def wake_up(client: Client, timeout_s: float) -> None:
    require_ok(ask(client, "/wake_up", {}, timeout_s))


def ask(client: Client, path: str, body: Any, timeout_s: float) -> Answer:
    try:
        return client.post(path, body, timeout_s)
    except Unreachable as error:
        raise TemperError("EngineFailed", f"vLLM ended before it answered ({error}) and is being restarted") from error


def client_get(client: Client, path: str) -> Answer:
    try:
        return client.get(path, LOAD_S)
    except (Unreachable, TimeoutError) as error:
        raise TemperError("EngineFailed", f"vLLM must answer {path}, but did not ({error}); retry") from error


def require_ok(answer: Answer) -> Answer:
    if answer.status == 200:
        return answer
    # A request that vLLM refuses is refused again; whatever else it says may pass.
    kind = "BadConfig" if answer.status in (400, 422) else "EngineFailed"
    raise TemperError(kind, f"vLLM refused with status {answer.status}: {answer.message}; {remedy(answer)}")


def remedy(answer: Answer) -> str:
    if "max_lora_rank" in answer.message:
        return "add --max-lora-rank=128 (or higher) to engine.vllm.args in temporal.config.ts"
    return "change the request, or engine.vllm.args in temporal.config.ts" if answer.status in (400, 422) else "retry"


def read_completion(answer: Answer, model: str, prompt: list[int], num_top: int = 0) -> Completion:
    """Raises PolicyMismatch for an answer to something else, EngineFailed for one that cannot be read."""
    try:
        body = answer.body
        choice = body["choices"][0]
        token_ids, logprobs = choice["token_ids"], choice["logprobs"]["token_logprobs"]
        reason, named, repeated = choice["finish_reason"], body["model"], choice["prompt_token_ids"]
        scored = choice.get("prompt_logprobs")
        tops = [likeliest(top, num_top) for top in choice["logprobs"]["top_logprobs"]] if num_top else []
        told = None if scored is None else [scored[i][str(prompt[i])]["logprob"] for i in range(1, len(prompt))]
    except (KeyError, IndexError, TypeError) as error:
        raise TemperError(
            "EngineFailed", f"vLLM must answer with token ids and log-probabilities ({error!r})"
        ) from error
    if named != model or repeated != prompt:
        what = f"{str(named)[:80]!r}" if named != model else "another prompt"
        raise TemperError(
            "PolicyMismatch", f"vLLM must answer as {model}, but answered as {what}; restart the GPU worker"
        )
    if reason not in ("stop", "length") or not token_ids or len(token_ids) != len(logprobs):
        raise TemperError(
            "EngineFailed",
            f"vLLM must finish an answer, but gave {len(token_ids)} tokens, {len(logprobs)} log-probabilities and the "
            f"reason {reason}; retry",
        )
    if not all(isinstance(value, float | int) and math.isfinite(value) for value in [*logprobs, *(told or ())]):
        raise TemperError("LossNotFinite", "vLLM must give finite log-probabilities, but gave others; check the model")
    return Completion(token_ids, [float(value) for value in logprobs], reason, tops, told)


def likeliest(top: Mapping[str, float], num_top: int) -> list[tuple[int, float]]:
    """vLLM adds the sampled token where it is none of them, and names tokens `token_id:7`."""
    found = sorted(((-float(logprob), int(name.rpartition(":")[2])) for name, logprob in top.items()))
    return [(token_id, -negative) for negative, token_id in found[:num_top]]
