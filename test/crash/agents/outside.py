"""See inside.ts; slow enough to be killed between two answers, and with a process of its own that would go on."""

import json
import os
import subprocess
import time
import urllib.request

TURNS = 3
BETWEEN_S = 0.15


def ask(content: str) -> str:
    body = {
        "model": os.environ["TEMPER_MODEL"],
        "messages": [{"role": "user", "content": content}],
        "max_tokens": 4,
    }
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
    url = f"{os.environ['OPENAI_BASE_URL']}/chat/completions"
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as response:
        return json.load(response)["choices"][0]["message"]["content"]


with open(os.environ["TEMPER_SCENARIO_FILE"], encoding="utf-8") as file:
    scenario = json.load(file)
left, right = scenario["left"], scenario["right"]
subprocess.Popen(["sleep", "6001"], start_new_session=True)
correct = 0
for _ in range(TURNS):
    answer = ask(f"{left}*{right}=")
    correct += answer == str(left * right)
    left, right = right, 2 + len(answer) % 8
    time.sleep(BETWEEN_S)
print(json.dumps({"reward": correct / TURNS, "metrics": {"correct": correct}}))
