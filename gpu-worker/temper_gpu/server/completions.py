"""OpenAI's (older) completions as values: the prompt is the caller's own text or tokens, without a chat template."""

from collections.abc import Iterator
from itertools import accumulate
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, PlainValidator, model_validator

from temper_gpu.engine.interface import Generation
from temper_gpu.server.answer_text import safe_text
from temper_gpu.server.bodies import flag, require, whole
from temper_gpu.server.chat import usage
from temper_gpu.server.prompts import Prompts
from temper_gpu.server.sampling import (
    MAX_CHOICES,
    MAX_TOP_LOGPROBS,
    Sampled,
    Sampling,
    sampled_of,
    text_of,
)
from temper_gpu.server.streams import ChoiceSoFar

# OpenAI's.
DEFAULT_MAX_TOKENS = 16

Prompt = str | tuple[int, ...]


def prompts_of(prompt: Any) -> tuple[Prompt, ...]:
    given = [prompt] if isinstance(prompt, str) or are_ids(prompt) else prompt
    is_known = isinstance(given, list) and all(isinstance(each, str) or are_ids(each) for each in given)
    if not is_known or not 0 < len(given) <= MAX_CHOICES:
        raise ValueError
    return tuple(each if isinstance(each, str) else tuple(each) for each in given)


def are_ids(prompt: Any) -> bool:
    return isinstance(prompt, list) and all(type(item) is int for item in prompt)


class CompletionRequest(Sampling):
    no_effect: ClassVar = {"user": "there is one user"}
    refused: ClassVar = {
        "best_of": ("send n, and choose by log-probabilities", 1),
        "suffix": ("put it into the prompt", ""),
    }

    prompt: Annotated[tuple[Prompt, ...], PlainValidator(prompts_of)] = Field(
        description=f"a string, a list of token ids, or a list of at most {MAX_CHOICES} of these"
    )
    # None: no log-probabilities.
    logprobs: int | None = whole(None, 0, MAX_TOP_LOGPROBS, "; alternatives of each token")
    echo: bool = flag("puts the prompt before the text; without `logprobs`")
    add_special_tokens: bool = flag("adds the tokenizer's own to a string, by default (vLLM's)", True)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        rule = "echo must come without logprobs (the prompt's are not computed), got both; leave one out"
        require(not self.echo or self.logprobs is None, rule)
        most = MAX_CHOICES // len(self.prompt)
        rule = f"n must be at most {most} for each of {len(self.prompt)} prompts, got {self.n}; send fewer at once"
        require(self.n <= most, rule)
        return self

    @property
    def limit(self) -> int:
        return self.max_tokens or DEFAULT_MAX_TOKENS


def encode_prompts(request: CompletionRequest, prompts: Prompts) -> list[tuple[int, ...]]:
    return [
        prompts.encode_text(each, request.add_special_tokens) if isinstance(each, str) else prompts.known_ids(each)
        for each in request.prompt
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
        num_choices = len(prompt_ids) * request.n
        self._choices = [ChoiceSoFar(request, prompts.decode) for _ in range(num_choices)]

    def whole(self, generations: list[Generation]) -> dict[str, Any]:
        choices = [self._choice(index, generation) for index, generation in enumerate(generations)]
        used = usage(self._prompt_ids, generations)
        return {**self._head, "choices": choices, "usage": used, "adapter_sha256": self._adapter}

    def begin(self) -> Iterator[dict[str, Any]]:
        for index in range(len(self._choices)):
            if self._request.echo or self._request.return_token_ids:
                yield {**self._chunk(index, self._echo(index), [], None), "adapter_sha256": self._adapter}

    def more(self, index: int, tokens: list[Sampled]) -> Iterator[dict[str, Any]]:
        so_far = self._choices[index]
        if not so_far.hear(tokens):
            return
        text = safe_text(so_far.text, self._request)
        if len(text) > so_far.num_told:
            told, so_far.num_told = text[so_far.num_told :], len(text)
            yield self._chunk(index, told, so_far.take(), None)

    def end(self, index: int, generation: Generation) -> Iterator[dict[str, Any]]:
        so_far = self._choices[index]
        rest = so_far.rest(generation)
        text = text_of(self._request, generation, self._prompts.decode)
        yield self._chunk(index, text[so_far.num_told :], rest, generation.finish_reason)

    def used(self, generations: list[Generation]) -> dict[str, Any]:
        return {**self._head, "choices": [], "usage": usage(self._prompt_ids, generations)}

    def _choice(self, index: int, generation: Generation) -> dict[str, Any]:
        text = self._echo(index) + text_of(self._request, generation, self._prompts.decode)
        told = self._told(index, text, sampled_of(generation), generation.finish_reason)
        if self._request.return_token_ids:
            told["prompt_token_ids"] = self._prompt_ids_of(index)
        return told

    def _chunk(self, index: int, text: str, tokens: list[Sampled], reason: str | None) -> dict[str, Any]:
        told = self._told(index, text, tokens, reason)
        if self._request.return_token_ids and not self._choices[index].num_taken and reason is None:
            told["prompt_token_ids"] = self._prompt_ids_of(index)
        return {**self._head, "choices": [told], **({"usage": None} if self._request.with_usage else {})}

    def _told(self, index: int, text: str, tokens: list[Sampled], reason: str | None) -> dict[str, Any]:
        told: dict[str, Any] = {"index": index, "text": text, "logprobs": None, "finish_reason": reason}
        if self._request.logprobs is not None:
            told["logprobs"] = self._logprobs(tokens)
        if self._request.return_token_ids:
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
        return self._prompt_ids[index // self._request.n]

    def _echo(self, index: int) -> str:
        return self._prompts.decode(list(self._prompt_ids_of(index))) if self._request.echo else ""
