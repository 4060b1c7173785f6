"""The agent of `openai-chat.ts` in another language, with nothing but Python's standard library."""

import json
import os
import signal
import urllib.request
from pathlib import Path

MAX_TURNS = 4
MAX_TOKENS = 64


def tool(name, description, parameter, kind):
    parameters = {"type": "object", "properties": {parameter: {"type": kind}}, "required": [parameter]}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


TOOLS = [
    tool("search", "Ids of what has the word.", "query", "string"),
    tool("read", "The text of an id.", "id", "number"),
]

notebook = json.loads(os.environ["TEMPER_SCENARIO"])
notes = notebook["notes"]
seen: set[str] = set()
searches = 0


def ask(messages):
    model = os.environ["TEMPER_MODEL"]
    body = {"model": model, "messages": messages, "tools": TOOLS, "max_tokens": MAX_TOKENS}
    key = os.environ["OPENAI_API_KEY"]
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
    url = f"{os.environ['OPENAI_BASE_URL']}/chat/completions"
    request = urllib.request.Request(url, data=json.dumps(body).encode(), headers=headers)
    with urllib.request.urlopen(request) as response:
        return json.load(response)["choices"][0]["message"]


def run(name, arguments):
    global searches
    if name == "search":
        kill_worker_once()
        searches += 1
        return f"[{', '.join(id for id, text in notes.items() if arguments['query'] in text)}]"
    seen.add(str(arguments["id"]))
    return notes.get(str(arguments["id"]), "none")


def kill_worker_once():
    """See `dieOnce` in task.ts: here the worker dies, and this program with it."""
    try:
        Path("..", "kills", os.environ["TEMPER_MODEL"]).unlink()
    except FileNotFoundError:
        return
    os.kill(os.getppid(), signal.SIGKILL)


def play():
    messages = [{"role": "user", "content": f"What is {notebook['subject']}?"}]
    for _ in range(MAX_TURNS):
        message = ask(messages)
        calls = message.get("tool_calls") or []
        if not calls:
            return message["content"] or ""
        messages.append(message)
        for call in calls:
            content = run(call["function"]["name"], json.loads(call["function"]["arguments"]))
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": content})
    return ""


answer = play()
right = answer.split(" ")[0] == notebook["answer"]
looked = min(searches, 1) + min(len(seen), 3)
shade = 0
for letter in answer:
    shade = (shade + ord(letter)) % 97
print((1 if right else 0) + 0.1 * looked + shade / 1000)
