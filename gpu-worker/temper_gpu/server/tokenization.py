"""Text to tokens and back, as vLLM's server offers it beside OpenAI's endpoints."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from temper_gpu.server.answering import Answering
from temper_gpu.server.answers import json_response
from temper_gpu.server.chat import parse_messages
from temper_gpu.server.fields import flag, is_integer, require, shown
from temper_gpu.server.open_models import OpenModels
from temper_gpu.server.prompts import Prompts
from temper_gpu.server.reading import parse_json
from temper_gpu.server.sampling import parse_model
from temper_gpu.server.targets import Target
from temper_gpu.server.template_kwargs import parse_template_kwargs, parse_template_sha256
from temper_gpu.server.tool_choice import parse_tools

OF_PROMPT = frozenset(["model", "prompt", "add_special_tokens", "return_token_strs"])
OF_TEMPLATE = frozenset(["chat_template_kwargs", "chat_template_sha256"])
OF_MESSAGES = OF_TEMPLATE | {"model", "messages", "tools", "return_token_strs"}
OF_TOKENS = frozenset(["model", "tokens"])


class Tokenization:
    def __init__(self, models: OpenModels, answering: Answering) -> None:
        self._models = models
        self._answering = answering

    async def tokenize(self, request: Request) -> Response:
        work, asked = await self._answering.read(request, parse_json)
        check_body(asked, OF_MESSAGES if isinstance(asked, dict) and "messages" in asked else OF_PROMPT)
        target = await self._models.target(parse_model(asked.get("model")))
        variables = parse_template_kwargs(asked.get("chat_template_kwargs"))
        template_sha256 = parse_template_sha256(asked.get("chat_template_sha256"))
        prompts = await self._models.prompts_of(target, variables, template_sha256)
        return json_response(await self._answering.readers.do(work, tokenized, asked, target, prompts))

    async def detokenize(self, request: Request) -> Response:
        work, asked = await self._answering.read(request, parse_json)
        check_body(asked, OF_TOKENS)
        token_ids = asked.get("tokens")
        is_known = isinstance(token_ids, list) and all(map(is_integer, token_ids))
        require(is_known, f"tokens must be a list of token ids, got {shown(token_ids)}; change it")
        prompts = await self._models.prompts_of(await self._models.target(parse_model(asked.get("model"))))
        return json_response({"prompt": await self._answering.readers.do(work, prompts.decode_all, token_ids)})


def check_body(body: Any, known: frozenset[str]) -> None:
    names = ", ".join(sorted(known))
    require(isinstance(body, dict), f"the body must be a JSON object of {names}, got something else; send one")
    unknown = next((name for name in body if name not in known), None)
    require(unknown is None, f"parameters must be {names}, got {unknown}; leave it out")


def tokenized(body: dict[str, Any], target: Target, prompts: Prompts) -> dict[str, Any]:
    if "messages" in body:
        token_ids = prompts.encode(parse_messages(body["messages"]), parse_tools(body))
    else:
        text = body.get("prompt")
        require(isinstance(text, str), f"prompt must be a string, got {shown(text)}; or send messages")
        token_ids = prompts.encode_text(str(text), flag(body, "add_special_tokens", True))
    answer = {"count": len(token_ids), "max_model_len": target.engine.model.context_window, "tokens": token_ids}
    return {**answer, "token_strs": prompts.entries(token_ids) if flag(body, "return_token_strs") else None}
