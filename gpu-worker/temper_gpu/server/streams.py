"""Streamed answers: the text that can be sent while sampling, and OpenAI's events of it."""

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import orjson

from temper_gpu.engine.interface import Generation
from temper_gpu.server.answer_text import UNFINISHED, Reading
from temper_gpu.server.chat import ChatRequest, chat_usage, logprob_entries, written
from temper_gpu.server.prompts import THOUGHTS, Prompts
from temper_gpu.server.sampling import Sampled, Sampling, sampled_of


def event(data: dict[str, Any]) -> bytes:
    return b"data: " + orjson.dumps(data) + b"\n\n"


DONE = b"data: [DONE]\n\n"


class TextSoFar:
    """The text of the tokens so far, each decoded with the one before it alone; without half characters."""

    def __init__(self, decode: Callable[[list[int]], str]) -> None:
        self._decode = decode
        self._token_ids: list[int] = []
        self._start = self._read = 0
        self.text = ""

    def add(self, token_id: int) -> None:
        self._token_ids.append(token_id)
        known = self._decode(self._token_ids[self._start : self._read])
        longer = self._decode(self._token_ids[self._start :])
        if len(longer) > len(known) and not longer.endswith(UNFINISHED):
            self.text += longer[len(known) :]
            self._start, self._read = self._read, len(self._token_ids)


class ChoiceSoFar:
    """State of one choice: received tokens that were not sent yet, and the number of characters that were."""

    def __init__(self, sampling: Sampling, decode: Callable[[list[int]], str]) -> None:
        self._sampling = sampling
        self._text = TextSoFar(decode)
        self.num_taken = 0
        self.num_told = 0
        self.num_thoughts_told = 0
        self._num_read = 0
        self._untold: list[Sampled] = []

    @property
    def text(self) -> str:
        return self._text.text

    def hear(self, tokens: list[Sampled]) -> bool:
        """Whether the text is to be read again. A reading begins at its start, so that a reading for each token would
        cost the square of its length: a long text waits until a small part of it is new."""
        self.num_taken += len(tokens)
        self._untold += tokens
        for token in tokens:
            if token.token_id not in self._sampling.stop_token_ids:
                self._text.add(token.token_id)
        is_due = len(self.text) - self._num_read >= len(self.text) >> 8
        if is_due:
            self._num_read = len(self.text)
        return is_due

    def take(self) -> list[Sampled]:
        taken, self._untold = self._untold, []
        return taken

    def new_of(self, thoughts: str, content: str) -> dict[str, str]:
        """Unsent parts of both, in the form of OpenAI's deltas."""
        new = {THOUGHTS: thoughts[self.num_thoughts_told :], "content": content[self.num_told :]}
        self.num_thoughts_told = max(self.num_thoughts_told, len(thoughts))
        self.num_told = max(self.num_told, len(content))
        return {name: text for name, text in new.items() if text}

    def rest(self, generation: Generation) -> list[Sampled]:
        """Unsent tokens, including those that the engine delivers with its answer."""
        return [*self.take(), *sampled_of(generation)[self.num_taken :]]


class Writer(Protocol):
    """Differences between OpenAI's two kinds of responses."""

    def whole(self, generations: list[Generation]) -> dict[str, Any]: ...

    def begin(self) -> Iterator[dict[str, Any]]:
        """Events before the first token."""
        ...

    def more(self, index: int, tokens: list[Sampled]) -> Iterator[dict[str, Any]]: ...

    def end(self, index: int, generation: Generation) -> Iterator[dict[str, Any]]: ...

    def used(self, generations: list[Generation]) -> dict[str, Any]:
        """The usage chunk at the end of a stream."""
        ...


class ChatWriter:
    """Streams calls once the answer is complete, because a malformed call turns all of it into text."""

    def __init__(
        self, request: ChatRequest, prompt_ids: tuple[int, ...], prompts: Prompts, adapter: str | None, request_id: str
    ) -> None:
        self._request = request
        self._prompts = prompts
        self._prompt_ids = prompt_ids
        tool_choice = request.tool_choice if request.parses_calls else None
        is_thinking = prompts.is_thinking(prompt_ids)
        self._reading = Reading(prompts, request, tool_choice, request.separate_reasoning, is_thinking)
        self._adapter = adapter
        self._request_id = request_id
        self._head = {
            "id": f"chatcmpl-{request_id}",
            "object": "chat.completion.chunk",
            "created": 0,
            "model": request.model,
        }
        self._choices = [ChoiceSoFar(request, prompts.decode) for _ in range(request.n)]

    def whole(self, generations: list[Generation]) -> dict[str, Any]:
        choices = [self._choice(index, generation) for index, generation in enumerate(generations)]
        usage = {"usage": chat_usage(self._prompt_ids, generations, self._reading), "adapter_sha256": self._adapter}
        prompt = {"prompt_token_ids": self._prompt_ids} if self._request.return_token_ids else {}
        return {**self._head, "object": "chat.completion", "choices": choices, **usage, **prompt}

    def begin(self) -> Iterator[dict[str, Any]]:
        told: dict[str, Any] = {"adapter_sha256": self._adapter}
        if self._request.return_token_ids:
            told["prompt_token_ids"] = self._prompt_ids
        for index in range(len(self._choices)):
            yield {**self._chunk(index, {"role": "assistant", "content": "", "refusal": None}, []), **told}

    def more(self, index: int, tokens: list[Sampled]) -> Iterator[dict[str, Any]]:
        so_far = self._choices[index]
        if not so_far.hear(tokens):
            return
        delta = so_far.new_of(*self._reading.certain(so_far.text))
        if delta:
            yield self._chunk(index, delta, so_far.take())

    def end(self, index: int, generation: Generation) -> Iterator[dict[str, Any]]:
        so_far = self._choices[index]
        rest = so_far.rest(generation)
        answer = self._choice(index, generation)
        message = answer["message"]
        delta = so_far.new_of(message.get(THOUGHTS, ""), message["content"] or "")
        if delta or (rest and (self._request.logprobs or self._request.return_token_ids)):
            yield self._chunk(index, delta or {"content": ""}, rest)
        for number, call in enumerate(message.get("tool_calls", [])):
            yield from self._call(index, number, call)
        ending = {name: answer[name] for name in ("finish_reason", "malformed_tool_calls") if name in answer}
        last = self._chunk(index, {}, [])
        last["choices"][0].update(ending)
        yield last

    def used(self, generations: list[Generation]) -> dict[str, Any]:
        return {**self._head, "choices": [], "usage": chat_usage(self._prompt_ids, generations, self._reading)}

    def _choice(self, index: int, generation: Generation) -> dict[str, Any]:
        message = written(generation, self._reading, f"{self._request_id}-{index}")
        return {"index": index, **message, **self._details(sampled_of(generation))}

    def _details(self, tokens: list[Sampled]) -> dict[str, Any]:
        entries = logprob_entries(self._prompts, tokens) if self._request.logprobs and tokens else None
        token_ids = [token.token_id for token in tokens]
        return {
            "logprobs": None if entries is None else {"content": entries, "refusal": None},
            **({"token_ids": token_ids} if self._request.return_token_ids else {}),
        }

    def _call(self, index: int, number: int, call: dict[str, Any]) -> Iterator[dict[str, Any]]:
        function = call["function"]
        begun = {"index": number, **call, "function": {"name": function["name"], "arguments": ""}}
        for delta in (begun, {"index": number, "function": {"arguments": function["arguments"]}}):
            yield self._chunk(index, {"tool_calls": [delta]}, [])

    def _chunk(self, index: int, delta: dict[str, Any], tokens: list[Sampled]) -> dict[str, Any]:
        details = self._details(tokens)
        told = {"index": index, "delta": delta, "logprobs": None, "finish_reason": None, **details}
        return {**self._head, "choices": [told], **({"usage": None} if self._request.with_usage else {})}
