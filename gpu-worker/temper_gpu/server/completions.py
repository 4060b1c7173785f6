"""OpenAI's (older) completions as values: the prompt is the caller's own text or tokens, without a chat template."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from temper_gpu.engine.interface import Generation
from temper_gpu.server.answer_text import safe_text
from temper_gpu.server.chat import usage
from temper_gpu.server.fields import first_not_none, flag, integer, is_integer, require, shown
from temper_gpu.server.parameters import check_parameters
from temper_gpu.server.prompts import Prompts
from temper_gpu.server.sampling import (
    MAX_TOP_LOGPROBS,
    ResponseOptions,
    Sampled,
    Sampling,
    parse_model,
    parse_response_options,
    parse_sampling,
    sampled_of,
    text_of,
)
from temper_gpu.server.streams import ChoiceSoFar

# OpenAI's.
DEFAULT_MAX_TOKENS = 16

Prompt = str | tuple[int, ...]


@dataclass(frozen=True)
class CompletionRequest:
    model: str
    prompts: tuple[Prompt, ...]
    adds_special_tokens: bool
    echoes: bool
    sampling: Sampling
    response: ResponseOptions
    # None: no log-probabilities.
    num_logprobs: int | None


def parse_completion_request(body: Any, max_choices: int) -> CompletionRequest:
    require(isinstance(body, dict), "the body must be a JSON object, got something else; see OpenAI's completions")
    check_parameters(body, "completions")
    prompts = parse_prompts(body.get("prompt"), max_choices)
    num_logprobs = None if body.get("logprobs") is None else integer(body, "logprobs", 0, 0, MAX_TOP_LOGPROBS)
    echoes = flag(body, "echo")
    require(
        not echoes or num_logprobs is None,
        "echo must come without logprobs (the prompt's are not computed), got both; leave one out",
    )
    return CompletionRequest(
        model=parse_model(body.get("model")),
        prompts=prompts,
        adds_special_tokens=flag(body, "add_special_tokens", True),
        echoes=echoes,
        sampling=parse_sampling(
            body, max_choices // len(prompts), first_not_none(body.get("max_tokens"), DEFAULT_MAX_TOKENS)
        ),
        response=parse_response_options(body),
        num_logprobs=num_logprobs,
    )


def parse_prompts(prompt: Any, most: int) -> tuple[Prompt, ...]:
    if isinstance(prompt, str):
        return (prompt,)
    given = prompt if isinstance(prompt, list) else []
    if given and all(map(is_integer, given)):
        return (tuple(given),)
    is_known = all(isinstance(each, str) or (isinstance(each, list) and all(map(is_integer, each))) for each in given)
    rule = f"prompt must be a string, a list of token ids, or a list of these, at most {most} prompts"
    require(0 < len(given) <= most and is_known, f"{rule}, got {shown(prompt)}; change it")
    return tuple(each if isinstance(each, str) else tuple(each) for each in given)


def encode_prompts(request: CompletionRequest, prompts: Prompts) -> list[tuple[int, ...]]:
    return [
        prompts.encode_text(each, request.adds_special_tokens) if isinstance(each, str) else prompts.known_ids(each)
        for each in request.prompts
    ]


class CompletionWriter:
    """Choices of the first prompt come first, then those of the next."""

    def __init__(
        self,
        request: CompletionRequest,
        prompt_ids: list[tuple[int, ...]],
        prompts: Prompts,
        adapter: str | None,
        request_id: str,
    ) -> None:
        self._request = request
        self._prompt_ids = prompt_ids
        self._prompts = prompts
        self._adapter = adapter
        self._head = {
            "id": f"cmpl-{request_id}",
            "object": "text_completion",
            "created": 0,
            "model": request.model,
        }
        num_choices = len(prompt_ids) * request.sampling.num_choices
        self._choices = [ChoiceSoFar(request.sampling, prompts.decode) for _ in range(num_choices)]

    def whole(self, generations: list[Generation]) -> dict[str, Any]:
        choices = [self._choice(index, generation) for index, generation in enumerate(generations)]
        used = usage(self._prompt_ids, generations)
        return {**self._head, "choices": choices, "usage": used, "adapter_sha256": self._adapter}

    def begin(self) -> Iterator[dict[str, Any]]:
        for index in range(len(self._choices)):
            if self._request.echoes or self._request.response.with_token_ids:
                yield {**self._chunk(index, self._echo(index), [], None), "adapter_sha256": self._adapter}

    def more(self, index: int, tokens: list[Sampled]) -> Iterator[dict[str, Any]]:
        so_far = self._choices[index]
        for token in tokens:
            so_far.hear(token)
        if not so_far.is_due():
            return
        text = safe_text(so_far.text, self._request.sampling)
        if len(text) > so_far.num_told:
            told, so_far.num_told = text[so_far.num_told :], len(text)
            yield self._chunk(index, told, so_far.take(), None)

    def end(self, index: int, generation: Generation) -> Iterator[dict[str, Any]]:
        so_far = self._choices[index]
        rest = so_far.rest(generation)
        text = text_of(self._request.sampling, generation, self._prompts.decode)
        yield self._chunk(index, text[so_far.num_told :], rest, generation.finish_reason)

    def used(self, generations: list[Generation]) -> dict[str, Any]:
        return {**self._head, "choices": [], "usage": usage(self._prompt_ids, generations)}

    def _choice(self, index: int, generation: Generation) -> dict[str, Any]:
        text = self._echo(index) + text_of(self._request.sampling, generation, self._prompts.decode)
        told = self._told(index, text, sampled_of(generation), generation.finish_reason)
        if self._request.response.with_token_ids:
            told["prompt_token_ids"] = self._prompt_ids_of(index)
        return told

    def _chunk(self, index: int, text: str, tokens: list[Sampled], reason: str | None) -> dict[str, Any]:
        told = self._told(index, text, tokens, reason)
        if self._request.response.with_token_ids and not self._choices[index].num_taken and reason is None:
            told["prompt_token_ids"] = self._prompt_ids_of(index)
        return {**self._head, "choices": [told], **({"usage": None} if self._request.response.with_usage else {})}

    def _told(self, index: int, text: str, tokens: list[Sampled], reason: str | None) -> dict[str, Any]:
        told: dict[str, Any] = {"index": index, "text": text, "logprobs": None, "finish_reason": reason}
        if self._request.num_logprobs is not None:
            told["logprobs"] = self._logprobs(tokens)
        if self._request.response.with_token_ids:
            told["token_ids"] = [token.token_id for token in tokens]
        return told

    def _logprobs(self, tokens: list[Sampled]) -> dict[str, Any]:
        texts = [self._prompts.token_text(token.token_id) for token in tokens]
        likely = [{self._prompts.token_text(id): logprob for id, logprob in token.top_logprobs} for token in tokens]
        return {
            "tokens": texts,
            "token_logprobs": [token.logprob for token in tokens],
            # The sampled token is always included, like OpenAI's, which may make one more than requested.
            "top_logprobs": [
                {**top, text: token.logprob} for top, text, token in zip(likely, texts, tokens, strict=True)
            ],
            "text_offset": list(accumulate(map(len, texts), initial=0))[:-1],
        }

    def _prompt_ids_of(self, index: int) -> tuple[int, ...]:
        return self._prompt_ids[index // self._request.sampling.num_choices]

    def _echo(self, index: int) -> str:
        return self._prompts.decode(list(self._prompt_ids_of(index))) if self._request.echoes else ""
