"""Requests to a vLLM server: token ids in, token ids and log-probabilities out, adapters loaded and unloaded.

Every answer is checked against its request: it must name the model and repeat the prompt.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from temper_gpu.contract import VLLM_KEY_VARIABLE
from temper_gpu.engine.interface import Distribution, GenerationRequest
from temper_gpu.engine.vllm.client import Aborted, Address, Answer, Client, Unreachable
from temper_gpu.failures import TemperError

PARAMETERS = ("top_p", "top_k", "min_p", "presence_penalty", "frequency_penalty", "repetition_penalty")
# Loading reads a file and copies it to the device.
LOAD_S = 300.0
# A retry would get the same answer.
REFUSALS = (400, 401, 403, 422)


@dataclass(frozen=True)
class Completion:
    token_ids: list[int]
    logprobs: list[float]
    finish_reason: str
    # Alternatives by token, the likeliest first; empty unless requested.
    top_logprobs: list[list[tuple[int, float]]]
    # Log-probabilities of the prompt's tokens but the first, at temperature 1; None unless requested.
    prompt_logprobs: list[float] | None
    # Fingerprint of vLLM's version and flags; None if it sends none.
    fingerprint: str | None = None


class LostAdapter(TemperError):
    """The server does not know the name: it was restarted, or the adapter was unloaded."""

    def __init__(self, message: str) -> None:
        super().__init__("EngineFailed", message)


class LostServer(TemperError):
    """No answer came, or one of another server than the one that was proven."""

    def __init__(self, message: str) -> None:
        super().__init__("EngineFailed", message)


@dataclass(frozen=True)
class ModelCard:
    """An entry of /v1/models."""

    name: str
    # The model's or the adapter's folder, as the server has it.
    root: str
    # Base model of an adapter.
    parent: str | None
    context_window: int | None
    # Facts about the server.
    owner: str


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
        raise LostAdapter(f"{client.address.server} must know {model}, but does not ({answer.message}); retry")
    return read_completion(client.address, require_ok(client.address, answer), model, prompt, request.num_top_logprobs)


def parameters(distribution: Distribution) -> dict[str, Any]:
    """Parameters of `Distribution`, with the same names and the same order of effects."""
    values = {name: getattr(distribution, name) for name in PARAMETERS}
    return {**values, "logit_bias": {str(token_id): bias for token_id, bias in distribution.logit_bias}}


def load_adapter(client: Client, sha256: str, path: str) -> None:
    """`path` is the folder as the server sees it. An adapter that is there already, of this very folder, is as good;
    one of another folder under this name makes way."""
    answer = try_load(client, sha256, path)
    if answer.status == 400 and root_of(client, sha256) is not None:
        if root_of(client, sha256) == path:
            return
        unload_adapter(client, sha256)
        answer = try_load(client, sha256, path)
    require_ok(client.address, answer)


def try_load(client: Client, name: str, path: str) -> Answer:
    return ask(client, "/v1/load_lora_adapter", {"lora_name": name, "lora_path": path}, LOAD_S)


def unload_adapter(client: Client, sha256: str, timeout_s: float = LOAD_S) -> None:
    """One that is gone already is as good."""
    answer = ask(client, "/v1/unload_lora_adapter", {"lora_name": sha256}, timeout_s)
    if answer.status != 404:
        require_ok(client.address, answer)


def root_of(client: Client, sha256: str) -> str | None:
    return next((card.root for card in list_models(client) if card.name == sha256), None)


def require_listed(client: Client, sha256: str, path: str) -> None:
    """Requires that the server's list has this folder under this name."""
    listed = [card.name for card in list_models(client) if card.root == path]
    if listed != [sha256]:
        raise TemperError(
            "PolicyMismatch",
            f"{client.address.server} must have the adapter {sha256} under this name, but lists its folder under "
            f"{', '.join(listed) or 'none'}; {advice(client.address)}",
        )


def list_models(client: Client, timeout_s: float = LOAD_S) -> list[ModelCard]:
    answer = require_ok(client.address, client_get(client, "/v1/models", timeout_s))
    cards: Any = answer.body.get("data") if isinstance(answer.body, Mapping) else None
    return [read_card(card) for card in cards if isinstance(card, Mapping)] if isinstance(cards, list) else []


def read_card(card: Mapping[str, Any]) -> ModelCard:
    parent, window = card.get("parent"), card.get("max_model_len")
    return ModelCard(
        name=str(card.get("id")),
        root=str(card.get("root")),
        parent=None if parent is None else str(parent),
        context_window=window if isinstance(window, int) else None,
        owner=str(card.get("owned_by")),
    )


def sleep(client: Client, timeout_s: float) -> None:
    """Weights go to main memory, keys and values are dropped."""
    require_ok(client.address, ask(client, "/sleep?level=1", {}, timeout_s))


def release_cache(client: Client, timeout_s: float) -> None:
    """Keys and values are dropped. vLLM does so while its scheduler is paused alone, which level 0 means."""
    require_ok(client.address, ask(client, "/sleep?level=0", {}, timeout_s))
    require_ok(client.address, ask(client, "/release_kv_cache_memory", {}, timeout_s))


def wake_up(client: Client, timeout_s: float, tag: str | None = None) -> None:
    """`tag`: the part of the memory that is allocated again; None: all. Scheduling continues with it."""
    require_ok(client.address, ask(client, "/wake_up" if tag is None else f"/wake_up?tags={tag}", {}, timeout_s))


def ask(client: Client, path: str, body: Any, timeout_s: float) -> Answer:
    try:
        return client.post(path, body, timeout_s)
    except Aborted as error:
        raise TemperError("EngineFailed", f"a request to {client.address.server} was given up; retry") from error
    except Unreachable as error:
        is_ours = client.address.url is None
        what = " and is being restarted" if is_ours else "; Temper waits until it is back"
        raise LostServer(f"{client.address.server} ended before it answered ({error}){what}") from error


def client_get(client: Client, path: str, timeout_s: float = LOAD_S) -> Answer:
    try:
        return client.get(path, timeout_s)
    except (Unreachable, TimeoutError) as error:
        raise LostServer(
            f"{client.address.server} must answer {path}, but did not ({error or type(error).__name__}); retry"
        ) from error


def require_ok(address: Address, answer: Answer) -> Answer:
    if answer.status == 200:
        return answer
    # vLLM repeats refusals; other errors may pass.
    is_final = answer.status in REFUSALS or 300 <= answer.status < 400 or "max_lora_rank" in answer.message
    raise TemperError(
        "BadConfig" if is_final else "EngineFailed",
        f"{address.server} refused with status {answer.status}: {answer.message}; {remedy(address, answer)}",
    )


def remedy(address: Address, answer: Answer) -> str:
    if "max_lora_rank" in answer.message:
        return (
            "add --max-lora-rank=128 (or higher) to engine.vllm.args in temporal.config.ts"
            if address.url is None
            else "start it with a higher --max-lora-rank, or train with a lower --lora-rank"
        )
    if address.url is not None and answer.status in (401, 403):
        return f"set {VLLM_KEY_VARIABLE} to the key that it was started with (--api-key, VLLM_API_KEY)"
    if 300 <= answer.status < 400:
        return "set engine.vllm.url to the address that it leads to"
    if answer.status in REFUSALS:
        own = "engine.vllm.args in temporal.config.ts" if address.url is None else "what the server is started with"
        return f"change the request, or {own}"
    return "retry"


def advice(address: Address) -> str:
    """Advice for a server with another model or adapter than it reports."""
    if address.url is None:
        return "restart the GPU worker"
    return "see who else loads models and adapters there, and start the run's command again"


def read_completion(address: Address, answer: Answer, model: str, prompt: list[int], num_top: int = 0) -> Completion:
    """Raises PolicyMismatch for an answer to something else, EngineFailed for one that cannot be read."""
    try:
        body = answer.body
        choice = body["choices"][0]
        token_ids, logprobs = choice["token_ids"], choice["logprobs"]["token_logprobs"]
        reason, named, repeated = choice["finish_reason"], body["model"], choice["prompt_token_ids"]
        fingerprint = body.get("system_fingerprint")
        scored = choice.get("prompt_logprobs")
        tops = [likeliest(top, num_top) for top in choice["logprobs"]["top_logprobs"]] if num_top else []
        scores = None if scored is None else [scored[i][str(prompt[i])]["logprob"] for i in range(1, len(prompt))]
    except (KeyError, IndexError, TypeError) as error:
        raise TemperError(
            "EngineFailed", f"{address.server} must answer with token ids and log-probabilities ({error!r})"
        ) from error
    if named != model or repeated != prompt:
        what = f"{str(named)[:80]!r}" if named != model else "another prompt"
        raise TemperError(
            "PolicyMismatch",
            f"{address.server} must answer as {model}, but answered as {what}; {advice(address)}",
        )
    if reason not in ("stop", "length") or not token_ids or len(token_ids) != len(logprobs):
        raise TemperError(
            "EngineFailed",
            f"{address.server} must finish an answer, but gave {len(token_ids)} tokens, {len(logprobs)} "
            f"log-probabilities and the reason {reason}; retry",
        )
    if not all(isinstance(value, float | int) and math.isfinite(value) for value in [*logprobs, *(scores or ())]):
        raise TemperError(
            "LossNotFinite", f"{address.server} must give finite log-probabilities, but gave others; check the model"
        )
    return Completion(token_ids, [float(value) for value in logprobs], reason, tops, scores, fingerprint)


def likeliest(top: Mapping[str, float], num_top: int) -> list[tuple[int, float]]:
    """vLLM adds the sampled token where it is none of them, and names tokens `token_id:7`."""
    found = sorted(((-float(logprob), int(name.rpartition(":")[2])) for name, logprob in top.items()))
    return [(token_id, -negative) for negative, token_id in found[:num_top]]
