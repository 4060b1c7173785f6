"""Plays one attempt: asks for a product and grades the answer. Needs nothing but Python's standard library."""

import json
import os
import urllib.request


def ask(content: str) -> str:
    """One call of the model that is trained, as any OpenAI client would make it."""
    body = {
        "model": os.environ["TEMPER_MODEL"],
        "messages": [{"role": "user", "content": content}],
        "max_tokens": 4,  # three digits, and the end of the turn
    }
    request = urllib.request.Request(
        f"{os.environ['OPENAI_BASE_URL']}/chat/completions",
        data=json.dumps(body).encode(),
        headers={
            "Content-Type": "application/json",
            "Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}",
        },
    )
    with urllib.request.urlopen(request) as response:
        return json.load(response)["choices"][0]["message"]["content"]


scenario = json.loads(os.environ["TEMPER_SCENARIO"])
left, right = scenario["left"], scenario["right"]
answer = ask(f"{left}*{right}=")
correct = answer == str(left * right)

# Lines printed before the last one are the attempt's log.
print(f"{left}*{right}={answer}")
print(json.dumps({"reward": int(correct), "metrics": {"correct": correct}}))
