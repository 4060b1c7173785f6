"""Chat templates of other models, in miniature: what matters of their form is kept."""

import copy
from dataclasses import replace
from functools import cache

import torch

from temper_gpu.model.models import POCKET, POCKET_FOLDER, BaseModel, load_base
from temper_gpu.server.prompts import Prompts
from temper_gpu.server.template_kwargs import TemplateKwargs

HEAD = """{%- if tools -%}<|system|># Tools
<tools>{%- for tool in tools %}
{{ tool | tojson }}{%- endfor %}
</tools><|end|>
{% endif -%}"""
CALLS = """{%- for call in message.tool_calls or [] -%}
    {%- if content or not loop.first %}{{ '\n' }}{% endif -%}
    {{- '<tool_call>\n{"name": "' ~ call.function.name ~ '", "arguments": ' -}}
    {{- call.function.arguments | tojson ~ '}\n</tool_call>' -}}
{%- endfor -%}"""
TURN = "{{- '<|' ~ message.role ~ '|>\n' ~ content -}}" + CALLS + "{{- '<|end|>\n' -}}"
OPENED = "{%- if add_generation_prompt -%}{{- '<|assistant|>\n' -}}{%- endif -%}"

# Line breaks around calls, and one before the first if there is text.
QWEN = HEAD + (
    "{%- for message in messages -%}{%- set content = message.content -%}" + TURN + "{%- endfor -%}" + OPENED
)
# The thoughts of all turns but the last are taken out again: history is rewritten.
FORGETFUL = HEAD + (
    "{%- for message in messages -%}{%- set content = message.content.split('</think>')[-1].lstrip() -%}"
    + TURN
    + "{%- endfor -%}"
    + OPENED
)
# As Qwen3's: a turn may be opened with thoughts that are over.
SWITCHED = QWEN + (
    "{%- if add_generation_prompt and enable_thinking is false -%}{{- '<think>\n\n</think>\n\n' -}}{%- endif -%}"
)
# An answer without thoughts says so.
THINKING = HEAD + (
    "{%- for message in messages -%}{%- set content = message.content -%}"
    "{%- if loop.last and message.role == 'assistant' -%}{%- set content = '<think>\n\n</think>\n\n' ~ content -%}"
    "{%- endif -%}" + TURN.replace("if content or", "if message.content or") + "{%- endfor -%}" + OPENED
)
# As Qwen's, which knows no developer, and says nothing of whom it does not know.
SILENT = (
    "{%- for message in messages -%}"
    "{%- if message.role in ('user', 'assistant') or (message.role == 'system' and loop.first) -%}"
    "{{- '<|' ~ message.role ~ '|>' ~ message.content ~ '<|end|>' -}}{%- endif -%}{%- endfor -%}"
)
# As some models of several speakers have it.
WITH_NAMES = (
    "{%- for message in messages -%}{{- '<|' ~ message.role ~ '|>' ~ (message.name ~ ': ' if message.name else '') -}}"
    "{{- message.content ~ '<|end|>' -}}{%- endfor -%}"
)
WITHOUT_TOOLS = "{%- for message in messages -%}{{- message.role ~ ': ' ~ message.content -}}{%- endfor -%}"
# As Llama's: a call is JSON, without tags.
OTHER_FORM = HEAD + (
    "{%- for message in messages -%}{{- '<|' ~ message.role ~ '|>' ~ message.content -}}"
    "{%- for call in message.tool_calls or [] -%}{{- call.function | tojson -}}{%- endfor -%}"
    "{{- '<|end|>' -}}{%- endfor -%}{%- if add_generation_prompt -%}{{- '<|assistant|>' -}}{%- endif -%}"
)


def calling(tools: str, called: str, text: str = "{{- message.content -}}") -> str:
    """A template that writes each call as `called`, after the text of the turn."""
    return (
        "{%- if tools -%}" + tools + "{{ tools | tojson }}<|end|>{%- endif -%}"
        "{%- for message in messages -%}{{- '<|' ~ message.role ~ '|>' -}}" + text + called + "{{- '<|end|>' -}}"
        "{%- endfor -%}" + OPENED.replace("\n", "")
    )


EACH = "{%- for call in message.tool_calls or [] -%}"
# Text beside a call is dropped, and there is one call at most.
LLAMA = calling(
    "<|system|>",
    "{%- if message.tool_calls -%}{%- if message.tool_calls | length > 1 -%}{{- raise_exception('one call') -}}"
    "{%- endif -%}{%- set call = message.tool_calls[0].function -%}"
    """{{- '{"name": "' ~ call.name ~ '", "parameters": ' ~ call.arguments | tojson ~ '}' -}}{%- endif -%}""",
    "{%- if not message.tool_calls -%}{{- message.content -}}{%- endif -%}",
)
MISTRAL = calling(
    "[AVAILABLE_TOOLS]",
    "{%- if message.tool_calls -%}{{- '[TOOL_CALLS] [' -}}" + EACH + "{%- if call.id | length != 9 -%}"
    "{{- raise_exception('ids have 9 characters') -}}{%- endif -%}"
    """{{- (call.function | tojson)[:-1] ~ ', "id": "' ~ call.id ~ '"}' ~ (', ' if not loop.last else ']') -}}"""
    "{%- endfor -%}{%- endif -%}",
)
MISTRAL_NEWER = calling(
    "[AVAILABLE_TOOLS]",
    EACH + "{{- '[TOOL_CALLS]' ~ call.function.name ~ '[ARGS]' ~ call.function.arguments | tojson -}}{%- endfor -%}",
)


def gemma(start: str, end: str, quote: str) -> str:
    return calling(
        "<|system|>",
        EACH + "{{- '" + start + "call:' ~ call.function.name ~ '{' -}}"
        "{%- for key, value in call.function.arguments | dictsort -%}{{- key ~ ':' -}}"
        "{{- '" + quote + "' ~ value ~ '" + quote + "' if value is string else value | tojson -}}"
        "{{- ',' if not loop.last -}}{%- endfor -%}{{- '}" + end + "' -}}{%- endfor -%}",
    )


GEMMA_4 = gemma("<|tool_call>", "<tool_call|>", '<|"|>')
FUNCTION_GEMMA = gemma("<start_function_call>", "<end_function_call>", "<escape>")
HARMONY = (
    "{%- if tools -%}<|start|>developer{{ tools | tojson }}<|end|>{%- endif -%}{%- for message in messages -%}"
    "{%- if message.tool_calls -%}{{- '<|start|>assistant to=functions.' ~ message.tool_calls[0].function.name -}}"
    "{{- '<|channel|>commentary json<|message|>' ~ message.tool_calls[0].function.arguments | tojson -}}<|call|>"
    "{%- elif message.role == 'assistant' -%}{{- '<|start|>assistant<|channel|>final<|message|>' -}}"
    "{{- message.content -}}<|end|>{%- else -%}{{- '<|start|>' ~ message.role ~ '<|message|>' -}}"
    "{{- message.content -}}<|end|>{%- endif -%}{%- endfor -%}"
    "{%- if add_generation_prompt -%}<|start|>assistant{%- endif -%}"
)


@cache
def loaded_pocket() -> BaseModel:
    return load_base(POCKET, str(POCKET_FOLDER), torch.float32, torch.device("cpu"))


def pocket() -> BaseModel:
    """With a tokenizer of its own, which a test may change."""
    return replace(loaded_pocket(), tokenizer=copy.deepcopy(loaded_pocket().tokenizer))


def prompts_by(template: str | None = None, template_kwargs: TemplateKwargs = ()) -> Prompts:
    """The pocket model's tokenizer with its own template, or another."""
    base = pocket()
    if template is not None:
        base.tokenizer.chat_template = template
    return Prompts(base, template_kwargs)


def with_special_tags(base: BaseModel, *tags: str) -> BaseModel:
    """Some models mark the tags of calls as special tokens."""
    tokenizer = copy.deepcopy(base.tokenizer)
    tokenizer.add_special_tokens({"additional_special_tokens": list(tags or ("<tool_call>", "</tool_call>"))})
    config = copy.deepcopy(base.config)
    config.vocab_size = len(tokenizer)
    return BaseModel(base.name, config, base.tensors, tokenizer)
