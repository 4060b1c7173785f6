"""OpenAI's client for Python against the GPU worker's own server: clients.py URL KEY."""

import sys

import openai
from pydantic import BaseModel

url, key = sys.argv[1:]
client = openai.OpenAI(base_url=f"{url}/v1", api_key=key)
MODEL, TAUGHT = "pocket", "pocket-tools"
ASKED = {"model": MODEL, "messages": [{"role": "user", "content": "1x34o6789"}], "temperature": 0, "max_tokens": 8}


class Move(BaseModel):
    cell: bool


def refused(kind, call):
    try:
        call()
    except kind:
        return
    raise AssertionError(f"expected {kind.__name__}")


whole = client.chat.completions.create(**ASKED)
with client.chat.completions.stream(**ASKED, stream_options={"include_usage": True}) as stream:
    streamed = stream.get_final_completion()
assert streamed.choices[0].message.content == whole.choices[0].message.content
assert streamed.usage == whole.usage

several = client.chat.completions.create(**{**ASKED, "temperature": 1}, n=3, logprobs=True, top_logprobs=2)
assert [choice.index for choice in several.choices] == [0, 1, 2]
assert all(len(token.top_logprobs) == 2 for choice in several.choices for token in choice.logprobs.content)

shaped = {**ASKED, "temperature": 1, "seed": 3, "max_tokens": 512}
assert isinstance(client.chat.completions.parse(**shaped, response_format=Move).choices[0].message.parsed, Move)


def tool(name, description, parameter, kind):
    parameters = {"type": "object", "properties": {parameter: {"type": kind}}, "required": [parameter]}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


# As the taught model knows them.
tools = [
    tool("search", "Ids of what has the word.", "query", "string"),
    tool("read", "The text of an id.", "id", "number"),
]
asked = {**ASKED, "model": TAUGHT, "messages": [{"role": "user", "content": "What is BOC?"}], "max_tokens": 64}
called = client.chat.completions.create(**asked, tools=tools, tool_choice="required")
assert called.choices[0].message.tool_calls[0].function.name == "search"

text = {"model": MODEL, "prompt": "1x34o6789", "temperature": 0, "max_tokens": 8}
pieces = [chunk.choices[0].text for chunk in client.completions.create(**text, stream=True)]
assert "".join(pieces) == client.completions.create(**text).choices[0].text
assert MODEL in [model.id for model in client.models.list()]

stranger = openai.OpenAI(base_url=f"{url}/v1", api_key="another key")
refused(openai.AuthenticationError, lambda: stranger.models.list())
refused(openai.NotFoundError, lambda: client.chat.completions.create(**{**ASKED, "model": "gpt-5"}))
refused(openai.BadRequestError, lambda: client.chat.completions.create(**ASKED, extra_body={"temprature": 1}))
long = {**ASKED, "max_tokens": 4000, "extra_body": {"ignore_eos": True}}
impatient = client.with_options(timeout=0.1, max_retries=0)
refused(openai.APITimeoutError, lambda: impatient.chat.completions.create(**long))
assert client.chat.completions.create(**ASKED).choices
