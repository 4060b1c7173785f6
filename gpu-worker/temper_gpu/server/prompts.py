"""Conversations to token ids and back, for one base model, by a chat template: its own or another (in jinja's
sandbox)."""

import hashlib
import json
import re
from contextlib import suppress
from functools import cached_property, lru_cache
from typing import Any

import orjson

from temper_gpu.contract import MAX_DEPTH
from temper_gpu.engine.interface import ContextTooLong, TextModel
from temper_gpu.failures import TemperError
from temper_gpu.model.chat_templates import check_template, missing_template
from temper_gpu.model.detokenizer import Detokenizer, is_harmony
from temper_gpu.server.control_tokens import ControlTokens
from temper_gpu.server.sampling import Sampling
from temper_gpu.server.template_kwargs import CLOCK, TemplateKwargs, clock_of, require_known
from temper_gpu.server.thoughts import find_thoughts
from temper_gpu.server.tool_calls import is_deeper
from temper_gpu.server.tool_choice import ToolChoice, function_name
from temper_gpu.server.tool_forms import TOOL_CALLS
from temper_gpu.server.tool_template import PROBE, PROBE_TOOLS, QUESTION, ToolTemplate, probe_call

# The attempts of a group begin with the same prompt, and rendering it is the most expensive part of a call.
MAX_REMEMBERED, MAX_REMEMBERED_BYTES = 1024, 16_384
# Tokens that hold the beginning of thoughts, and line breaks after it.
END_OF_PROMPT = 16
# Probe values without a common digit at any place.
DAYS = ("1999-01-23", "2050-12-14")
# Length of text that takes a few milliseconds at most.
SHORT_TEXT = 4096
ANSWER = {"role": "assistant", "content": "!"}
CALLED = {"role": "assistant", "content": "", "tool_calls": [probe_call("look", {})]}
# Members of every message. Templates may leave a call's id out and match results by order.
USUAL = frozenset(["role", "content", "tool_calls", "tool_call_id"])
THOUGHTS = "reasoning_content"
SHORT_ID = re.compile("[A-Za-z0-9]{9}")
# Longest member name: results of probes are cached, and no template has longer names.
MAX_MEMBER_LENGTH = 64
# Roles whose text must be rendered.
RENDERED_ROLES = frozenset(["system", "developer", "tool"])


class Prompts:
    def __init__(
        self, model: TextModel, template_kwargs: TemplateKwargs = (), given_template: str | None = None
    ) -> None:
        template = given_template or model.tokenizer.chat_template or ""
        require_known(template_kwargs, template, model.name)
        self._template_kwargs = template_kwargs
        self._given_template = given_template
        self._name = model.name
        self._context_window = model.context_window
        self._num_tokens = min(len(model.tokenizer), model.vocabulary_size)
        self._end_token_ids = model.end_token_ids
        self._tokenizer = model.tokenizer
        # Cheaper than its wrapper, as in the detokenizer.
        self._backend = getattr(model.tokenizer, "backend_tokenizer", None)
        self._remembered: dict[bytes, tuple[int, ...]] = {}
        self.decode = Detokenizer(model.tokenizer).decode
        self._controls = ControlTokens(model.name, model.tokenizer, self.tokenise)
        # Some models have several, by name.
        self._template = str(template)
        self.is_harmony = is_harmony(model.tokenizer)
        self.tools = ToolTemplate(model.name, self._render, self.is_harmony)
        added = getattr(model.tokenizer, "added_tokens_decoder", {}).values()
        self.thoughts = find_thoughts(self._template, (token.content for token in added))
        self.token_text = lru_cache(1 << 16)(self._token_text)
        self._writes_role = lru_cache(64)(self._probe_role)
        self._writes_member = lru_cache(256)(self._probe_member)

    def encode(
        self, messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None, choice: ToolChoice | None = None
    ) -> tuple[int, ...]:
        """Token ids of the conversation with the assistant's turn opened, and the call in it where one must be."""
        opening = self.tools.opening(choice.name) if choice is not None and choice.is_opened else ""
        key = orjson.dumps([messages, tools, opening])
        if len(key) > MAX_REMEMBERED_BYTES or self.reads_clock:
            return self._encode(messages, tools, opening)
        ids = self._remembered.get(key)
        if ids is None:
            if len(self._remembered) >= MAX_REMEMBERED:
                self._remembered.clear()
            ids = self._remembered[key] = self._encode(messages, tools, opening)
        return ids

    def encode_text(self, text: str, adds_special_tokens: bool) -> tuple[int, ...]:
        """A caller's own prompt: what looks like a control token in it is one."""
        self._require_room(text)
        ids = self._tokenizer(text)["input_ids"] if adds_special_tokens else self.tokenise(text)
        return self.known_ids(tuple(ids))

    def known_ids(self, token_ids: tuple[int, ...], subject: str = "prompt") -> tuple[int, ...]:
        if not token_ids or (min(token_ids) >= 0 and max(token_ids) < self._num_tokens):
            return token_ids
        unknown = next(token_id for token_id in token_ids if not 0 <= token_id < self._num_tokens)
        rule = f"token ids in {subject} must be below {self._num_tokens}, the size of {self._name}'s vocabulary"
        if not self._num_tokens <= unknown < len(self._tokenizer):
            raise TemperError("BadConfig", f"{rule}, got {unknown}; change them")
        token = self._tokenizer.convert_ids_to_tokens(unknown)
        raise TemperError(
            "BadConfig",
            f"{rule}, got {unknown} ({token}, which the tokenizer has and the weights have no embedding for); leave it "
            "out, or resize the model's embedding",
        )

    def require_playable(self) -> None:
        """Refuses a template with which every call would fail, or no answer would end."""
        check_template(self._name, self._tokenizer, self._given_template)
        self.encode([QUESTION], None)
        # The template may write another end after an answer, of the same kind as its other tokens.
        tail = self._written([QUESTION, ANSWER], None, False).rpartition(ANSWER["content"])[2]
        ids = self.known_ids(tuple(self._controls.encode(tail)), "the chat template")
        written = [token_id for token_id in ids if token_id in self._controls.ids]
        if not written or not self._end_token_ids.isdisjoint(ids):
            return
        ends = ", ".join(self._tokenizer.convert_ids_to_tokens(sorted(self._end_token_ids))) or "none"
        end = self._tokenizer.convert_ids_to_tokens(written[0])
        raise TemperError(
            "BadConfig",
            f"the chat template must end an answer with a token that ends an answer of {self._name} ({ends}), it "
            f"writes {end}, and so no answer would end; add {written[0]} to eos_token_id in the model's "
            "generation_config.json, or pass another template by --chat-template",
        )

    @cached_property
    def reads_clock(self) -> bool:
        """Whether the template writes the current date, and no variable sets it."""
        if CLOCK not in self._template or any(name == CLOCK for name, _ in self._template_kwargs):
            return False
        return any(
            self._written_on(DAYS[0], tools) != self._written_on(DAYS[1], tools) for tools in (None, PROBE_TOOLS)
        )

    def _written_on(self, day: str, tools: list[dict[str, Any]] | None) -> str:
        """Empty where the template refuses such a prompt on any day."""
        with suppress(TemperError):
            return self._render([QUESTION], tools, True, (*self._template_kwargs, (CLOCK, day)))
        return ""

    def require_known(self, sampling: Sampling) -> None:
        self.known_ids(tuple(token_id for token_id, _ in sampling.distribution.logit_bias), "logit_bias")

    def is_thinking(self, prompt_ids: tuple[int, ...]) -> bool:
        """The prompt ends within thoughts: its template begins them."""
        if self.thoughts is None:
            return False
        end = self._tokenizer.decode(list(prompt_ids[-END_OF_PROMPT:])).rstrip()
        return end.endswith(self.thoughts.start.rstrip())

    def shown_opening(self, choice: ToolChoice) -> str:
        """The part of the opened call that belongs to the answer."""
        opening = self.tools.opening(choice.name) if choice.is_opened else ""
        return opening[opening.find(self.tools.form.start) :] if opening else ""

    def gaps(self) -> list[str]:
        """Features that the model's template cannot render, in words; requests with them are refused."""
        # The developer role is rendered as system if necessary.
        places = {
            "system messages": ("system", True),
            "system messages after the first message": ("system", False),
            "results of tools": ("tool", False),
        }
        found = [f"it leaves out {what}" for what, place in places.items() if self._writes_role(*place) is False]
        if self._writes_member("user", "name") is False:
            found.append("it leaves out names of messages")
        try:
            _ = self.tools.form
        except TemperError as error:
            found.append(error.message)
        return found

    def tokenise(self, text: str) -> list[int]:
        if self._backend is None:
            return self._tokenizer(text, add_special_tokens=False)["input_ids"]
        if len(text) <= SHORT_TEXT:
            return self._backend.encode(text, add_special_tokens=False).ids
        # Seconds for a megabyte, in which `encode` would let no other thread run: it keeps Python's lock.
        return self._backend.encode_batch_fast([text], add_special_tokens=False)[0].ids

    def split_assistant_turn(
        self, messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Splits a conversation that ends with an assistant's message into the ids of its prompt, as `encode` returns
        them, and the ids of the message, as the template renders it."""
        prompt, whole = (
            self._written(part, tools, opens) for part, opens in ((messages[:-1], True), (messages, False))
        )
        if not whole.startswith(prompt):
            index = len(messages) - 1
            raise self._unsupported_message(
                f"message {index}, an assistant's,",
                "writes it otherwise than it opens the turn",
                "set the variables of the template by --chat-template-kwargs, or pass another one by --chat-template",
            )
        ids, prompt_ids = map(self._known, (whole, prompt))
        if ids[: len(prompt_ids)] == prompt_ids:
            return prompt_ids, ids[len(prompt_ids) :]
        # The tokenizer joined the last of the prompt and the first of the message: a model that answers cannot.
        return prompt_ids, self._known(whole[len(prompt) :], continues=True)

    def _encode(
        self, messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None, opening: str
    ) -> tuple[int, ...]:
        rendered = self._written(messages, tools, True)
        self._require_room(rendered)
        return self._known(rendered + opening)

    def _known(self, rendered: str, continues: bool = False) -> tuple[int, ...]:
        return self.known_ids(tuple(self._controls.encode(rendered, continues)))

    def _written(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None, opens_turn: bool) -> str:
        joiner = self.tools.joiner if tools else ""
        normalized = [self._normalize_message(index, message) for index, message in enumerate(messages)]
        if TOOL_CALLS in self._template:
            normalized = [with_short_ids(message) for message in normalized]
        return self._render([plain_message(message, joiner) for message in normalized], tools, opens_turn)

    def _normalize_message(self, index: int, message: dict[str, Any]) -> dict[str, Any]:
        """Prepares a message for the template. Members that it would drop silently are refused by name."""
        role, is_first = message["role"], index == 0
        if role == "developer" and not self._writes_role(role, is_first):
            # The developer role is OpenAI's newer name for system.
            role, message = "system", {**message, "role": "system"}
        if role in RENDERED_ROLES and self._writes_role(role, is_first) is False:
            place = "" if is_first else " after the first message"
            raise self._unsupported_message(f"role of message {index}", f"leaves {role} out{place}", "send it as user")
        for name, value in message.items():
            if name not in self._may_drop(role) and not is_empty(value) and self._leaves_out(role, name):
                raise self._unsupported_message(
                    f"{name[:MAX_MEMBER_LENGTH]} of message {index}",
                    "leaves it out",
                    "leave it out, or put it into content",
                )
        return message

    def _unsupported_message(self, subject: str, reason: str, remedy: str) -> TemperError:
        rule = f"{subject} must be something that the chat template of {self._name} renders"
        return TemperError("BadConfig", f"{rule}, it {reason}; {remedy}")

    def _may_drop(self, role: str) -> frozenset[str]:
        """Models that think are trained to see no thoughts of earlier turns."""
        thinks = role == "assistant" and (self.thoughts is not None or self.is_harmony)
        return USUAL | {THOUGHTS} if thinks else USUAL

    def _leaves_out(self, role: str, name: str) -> bool:
        return len(name) > MAX_MEMBER_LENGTH or self._writes_member(role, name) is False

    def _probe_role(self, role: str, is_first: bool) -> bool | None:
        """Whether the template writes messages of this role; None if it refuses the role with its own error."""
        before = [] if is_first else [QUESTION, CALLED if role == "tool" else ANSWER]
        try:
            return PROBE in self._render([*before, {"role": role, "content": PROBE}, QUESTION], None, True)
        except TemperError:
            return None

    def _probe_member(self, role: str, name: str) -> bool | None:
        before = [] if role == "system" else [QUESTION, CALLED] if role == "tool" else [QUESTION]
        message = {"role": role, "content": "!"}
        conversation = [message] if role == "user" else [*before, message]
        try:
            plain = self._render([*conversation], None, False)
            return self._render([*conversation[:-1], {**message, name: PROBE}], None, False) != plain
        except TemperError:
            return None

    def _require_room(self, rendered: str) -> None:
        """Refuses a prompt that cannot fit before it is tokenised, which would take seconds for a very long one."""
        window, length = self._context_window, len(rendered)
        if length > window and length > window * self._longest_token:
            raise ContextTooLong(
                f"a prompt must fit into the {window} tokens of {self._name}, but this one has {length} characters, "
                f"more than that many tokens can hold; shorten the conversation"
            )

    @cached_property
    def _longest_token(self) -> int:
        """Length of the longest token in characters; in bytes, which are no fewer, for byte-level tokens."""
        return max(map(len, self._tokenizer.get_vocab()))

    def _render(
        self,
        messages: list[dict[str, Any]],
        tools: list[dict[str, Any]] | None,
        opens_turn: bool,
        template_kwargs: TemplateKwargs = (),
    ) -> str:
        if not self._template:
            raise missing_template(self._name)
        variables = template_kwargs or self._template_kwargs
        try:
            template = self._tokenizer.get_chat_template(self._given_template, tools)
            return self._tokenizer.apply_chat_template(
                [self._controls.seal_message(index, message) for index, message in enumerate(messages)],
                tools=self._controls.seal_tools(tools),
                chat_template=clock_of(variables) + template,
                add_generation_prompt=opens_turn,
                tokenize=False,
                **self._controls.seal_variables({name: value for name, value in variables if name != CLOCK}),
            )
        except Exception as error:  # every error of a template is caused by its input
            raise TemperError(
                "BadConfig",
                f"messages must fit the chat template of {self._name}, which says: {error}; change the messages",
            ) from error

    def _token_text(self, token_id: int) -> str:
        return self._tokenizer.decode([token_id])


def is_empty(value: Any) -> bool:
    """Whether a value is empty; 0 and false are not."""
    return value is None or value == "" or value == [] or value == {}


def with_short_ids(message: dict[str, Any]) -> dict[str, Any]:
    """Mistral's templates take ids of nine letters or digits only."""
    short = {**message}
    if isinstance(message.get("tool_call_id"), str):
        short["tool_call_id"] = short_id(message["tool_call_id"])
    calls = message.get("tool_calls")
    if isinstance(calls, list):
        short["tool_calls"] = [
            {**call, "id": short_id(call["id"])} if isinstance(call, dict) and isinstance(call.get("id"), str) else call
            for call in calls
        ]
    return short


def short_id(call_id: str) -> str:
    return call_id if SHORT_ID.fullmatch(call_id) else hashlib.sha256(call_id.encode()).hexdigest()[:9]


def plain_message(message: dict[str, Any], joiner: str = "") -> dict[str, Any]:
    """Templates need text, not parts, and arguments of tool calls as objects, not as JSON text.

    `joiner` is the template's text before the first call. Sampled text that ends with it is passed without it;
    otherwise it would be written twice, and the conversation would differ from the sampled one.
    """
    plain = {name: value for name, value in message.items() if value is not None}
    if isinstance(plain.get("content"), list):
        plain["content"] = "".join(part_text(part) for part in plain["content"])
    elif not isinstance(plain.get("content", ""), str):
        raise TemperError(
            "BadConfig", "a message's content must be a string or a list of text parts, got something else; send text"
        )
    plain.setdefault("content", "")
    if plain.get("tool_calls"):
        plain["tool_calls"] = plain_tool_calls(plain["tool_calls"])
        plain["content"] = plain["content"].removesuffix(joiner)
    return plain


def part_text(part: Any) -> str:
    if isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str):
        return part["text"]
    kind = part.get("type") if isinstance(part, dict) else type(part).__name__
    raise TemperError("BadConfig", f"parts of a message must be text, got {kind}; send text only")


def plain_tool_calls(calls: Any) -> list[dict[str, Any]]:
    if not isinstance(calls, list) or not all(isinstance(call, dict) and function_name(call) for call in calls):
        raise TemperError(
            "BadConfig",
            "tool_calls of a message must be a list of calls with a function's name; send the calls as they were "
            "answered",
        )
    return [{**call, "function": plain_function(call["function"])} for call in calls]


def plain_function(function: dict[str, Any]) -> dict[str, Any]:
    arguments = function.get("arguments") or "{}"
    if not isinstance(arguments, str):
        return function
    try:
        read = json.loads(arguments)
        # Half of a surrogate pair is JSON, but no text.
        json.dumps(read, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return function
    return function if is_deeper(read, MAX_DEPTH) else {**function, "arguments": read}
