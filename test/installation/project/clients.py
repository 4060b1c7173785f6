"""The official clients for Python: OpenAI's against both servers, Anthropic's against `temper serve`. PLACES says where
they are, each with a model that was taught to call `search`."""

import json
import os

import anthropic
import openai
from pydantic import BaseModel

PLACES = json.loads(os.environ["PLACES"])
BOARD, QUESTION = "1x34o6789", "What is BOC?"
USER = [{"role": "user", "content": BOARD}]
# Between the parts of a JSON value a model may write blanks.
FREELY = {"temperature": 1, "seed": 3}
SCHEMA = {"type": "object", "properties": {"cell": {"type": "boolean"}}, "required": ["cell"]}


class Move(BaseModel):
    cell: bool


def refused(kind, call):
    try:
        call()
    except kind:
        return
    raise AssertionError(f"expected {kind.__name__}")


def parameters(name, kind):
    return {"type": "object", "properties": {name: {"type": kind}}, "required": [name]}


# Tools as the taught model knows them.
TOOLS = {
    "search": ("Ids of what has the word.", parameters("query", "string")),
    "read": ("The text of an id.", parameters("id", "number")),
}
FUNCTIONS = [{"name": name, "description": text, "parameters": form} for name, (text, form) in TOOLS.items()]


def is_search(name, arguments):
    return name == "search" and isinstance(arguments["query"], str)


def play_chat(client, model):
    asked = {"model": model, "messages": USER, "temperature": 0, "max_tokens": 8}
    whole = client.chat.completions.create(**asked)
    with client.chat.completions.stream(**asked, stream_options={"include_usage": True}) as stream:
        streamed = stream.get_final_completion()
    assert streamed.choices[0].message.content == whole.choices[0].message.content
    assert streamed.usage == whole.usage
    several = client.chat.completions.create(**{**asked, "temperature": 1}, n=3, logprobs=True, top_logprobs=2)
    assert [choice.index for choice in several.choices] == [0, 1, 2]
    assert all(len(token.top_logprobs) == 2 for choice in several.choices for token in choice.logprobs.content)
    shaped = {**asked, **FREELY, "max_tokens": 512}
    assert isinstance(client.chat.completions.parse(**shaped, response_format=Move).choices[0].message.parsed, Move)
    tools = [{"type": "function", "function": function} for function in FUNCTIONS]
    messages = [{"role": "user", "content": QUESTION}]
    calling = {**asked, "messages": messages, "max_tokens": 64, "tools": tools, "tool_choice": "required"}
    called = client.chat.completions.create(**calling).choices[0].message.tool_calls[0].function
    assert is_search(called.name, json.loads(called.arguments))
    with client.chat.completions.stream(**calling) as stream:
        [again] = stream.get_final_completion().choices[0].message.tool_calls
    assert (again.function.name, again.function.arguments) == (called.name, called.arguments)
    play_models_and_errors(client, model, asked)


def play_models_and_errors(client, model, asked):
    assert model in [each.id for each in client.models.list()]
    assert client.models.retrieve(model).id == model
    stranger = client.with_options(api_key="another key")
    refused(openai.AuthenticationError, lambda: stranger.models.list())
    refused(openai.NotFoundError, lambda: client.chat.completions.create(**{**asked, "model": "gpt-5"}))
    refused(openai.BadRequestError, lambda: client.chat.completions.create(**asked, extra_body={"temprature": 1}))
    long = {**asked, "max_tokens": 4000, "extra_body": {"ignore_eos": True}}
    impatient = client.with_options(timeout=0.1, max_retries=0)
    refused(openai.APITimeoutError, lambda: impatient.chat.completions.create(**long))
    assert client.chat.completions.create(**asked).choices


def play_completions(client, model):
    text = {"model": model, "prompt": BOARD, "temperature": 0, "max_tokens": 8}
    pieces = [chunk.choices[0].text for chunk in client.completions.create(**text, stream=True)]
    assert "".join(pieces) == client.completions.create(**text).choices[0].text


def play_responses(client, model):
    asked = {"model": model, "input": BOARD, "temperature": 0, "max_output_tokens": 8}
    whole = client.responses.create(**asked, include=["message.output_text.logprobs"], top_logprobs=2)
    assert all(len(token.top_logprobs) == 2 for token in whole.output[0].content[0].logprobs)
    with client.responses.stream(**asked) as stream:
        streamed = [event for event in stream][-1].response
    assert (streamed.output_text, streamed.usage) == (whole.output_text, whole.usage)
    shaped = {**asked, "temperature": 1, "max_output_tokens": 512, "extra_body": {"seed": 3}}
    assert isinstance(client.responses.parse(**shaped, text_format=Move).output_parsed, Move)
    tools = [{"type": "function", "strict": True, **function} for function in FUNCTIONS]
    calling = {**asked, "input": QUESTION, "max_output_tokens": 64, "tools": tools}
    first = client.responses.create(**calling, tool_choice="required")
    [call] = [item for item in first.output if item.type == "function_call"]
    assert is_search(call.name, json.loads(call.arguments))
    output = {"type": "function_call_output", "call_id": call.call_id, "output": "[7]"}
    second = client.responses.create(**{**calling, "input": [output]}, previous_response_id=first.id)
    assert client.responses.retrieve(second.id) == second
    client.responses.delete(second.id)
    refused(openai.NotFoundError, lambda: client.responses.retrieve(second.id))
    refused(openai.BadRequestError, lambda: client.responses.create(**asked, background=True))


def play_messages(client, model):
    # This client has no parameter for it.
    asked = {"model": model, "messages": USER, "max_tokens": 8, "extra_body": {"temperature": 0}}
    whole = client.messages.create(**asked)
    with client.messages.stream(**asked) as stream:
        streamed = stream.get_final_message()
    assert (streamed.content[0].text, streamed.stop_reason) == (whole.content[0].text, whole.stop_reason)
    assert streamed.usage.output_tokens == whole.usage.output_tokens
    form = {"type": "json_schema", "schema": {**SCHEMA, "additionalProperties": False}}
    freely = {**asked, "max_tokens": 512, "extra_body": {"temperature": 1}}
    shaped = client.messages.create(**freely, output_config={"format": form})
    Move.model_validate_json(shaped.content[0].text)
    tools = [{"name": name, "description": text, "input_schema": form} for name, (text, form) in TOOLS.items()]
    messages = [{"role": "user", "content": QUESTION}]
    calling = {**asked, "messages": messages, "max_tokens": 64, "tools": tools, "tool_choice": {"type": "any"}}
    called = client.messages.create(**calling)
    assert called.stop_reason == "tool_use"
    assert is_search(called.content[-1].name, called.content[-1].input)
    with client.messages.stream(**calling) as stream:
        assert stream.get_final_message().content[-1].input == called.content[-1].input
    assert model in [each.id for each in client.models.list()]
    refused(anthropic.AuthenticationError, lambda: client.with_options(api_key="another key").messages.create(**asked))
    refused(anthropic.NotFoundError, lambda: client.messages.create(**{**asked, "model": "claude"}))
    refused(anthropic.BadRequestError, lambda: client.messages.create(**{**asked, "extra_body": {"temprature": 1}}))


def openai_at(place):
    return openai.OpenAI(base_url=f"{place['url']}/v1", api_key=place["apiKey"])


engine, serve = PLACES["engine"], PLACES["serve"]
play_chat(openai_at(engine), engine["model"])
play_completions(openai_at(engine), engine["model"])
play_chat(openai_at(serve), serve["model"])
play_responses(openai_at(serve), serve["model"])
play_messages(anthropic.Anthropic(base_url=serve["url"], api_key=serve["apiKey"]), serve["model"])
