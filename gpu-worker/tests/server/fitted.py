"""A model that answers as it was told: the pocket model, fitted in seconds to a few conversations.

What it says is sampled by the real engine from real weights, so that tests of whole paths know what comes.
As a program: python -m tests.server.fitted FOLDER FILE ARGUMENTS… fits it to the conversations in FILE, then is the GPU
worker with these arguments: its imports take longer than the fitting.
Shapes: T tokens of a row, V vocabulary.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from transformers import AutoModelForCausalLM

from temper_gpu.__main__ import main
from temper_gpu.model.models import POCKET, POCKET_FOLDER, load_base
from temper_gpu.server.prompts import Prompts
from temper_gpu.server.tool_choice import parse_tool_choice
from temper_gpu.training.groups import Call
from temper_gpu.training.packing import Row
from temper_gpu.training.rows import attempt_rows

END_OF_TURN = "<|end|>"
# About 100 steps do, with last bits of any processor (93 to 106 over starts that differ by a millionth); at twice this
# rate it takes 87 to 349.
MAX_STEPS, LEARNING_RATE = 800, 3e-3
# Of the least likely token: far from any tie, so greedy answers are right on every machine.
ENOUGH = 0.8


def fit(conversations: Sequence[dict[str, Any]], folder: Path) -> None:
    """Each as a request has it; `text` of an assistant's message is what it is to say, exactly as sampled."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    base = load_base(POCKET, str(POCKET_FOLDER), torch.float32, torch.device("cpu"))
    model = AutoModelForCausalLM.from_pretrained(POCKET_FOLDER)
    prompts = Prompts(base)
    rows = [row for each in conversations for row in attempt_rows(list(calls_of(prompts, each)), [1.0])]
    optimizer = torch.optim.AdamW(model.parameters(), LEARNING_RATE, weight_decay=0.0)
    for _ in range(MAX_STEPS):
        losses = [sampled_losses(model, row) for row in rows]
        if torch.cat(losses).max().neg().exp() > ENOUGH:
            model.save_pretrained(folder)
            base.tokenizer.save_pretrained(folder)
            return
        torch.cat(losses).mean().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    raise RuntimeError(f"not fitted after {MAX_STEPS} steps")


def sampled_losses(model: Any, row: Row) -> torch.Tensor:
    tokens_T = torch.tensor(row.token_ids)
    logits_TV = model(tokens_T[None, :-1]).logits[0]
    places_T = torch.tensor(row.positions)
    return F.cross_entropy(logits_TV[places_T - 1], tokens_T[places_T], reduction="none")


def calls_of(prompts: Prompts, conversation: dict[str, Any]) -> Iterator[Call]:
    messages, tools = conversation["messages"], conversation.get("tools")
    choice = parse_tool_choice(conversation.get("tool_choice", "auto"), True, tools)
    for index, message in enumerate(messages):
        if message["role"] == "assistant":
            history = [{name: each[name] for name in each if name != "text"} for each in messages[:index]]
            sampled = prompts.tokenise(message["text"] + END_OF_TURN)
            yield Call(list(prompts.encode(history, tools, choice)), sampled, [0.0] * len(sampled), 1.0, None)


if __name__ == "__main__":
    folder, file, *arguments = sys.argv[1:]
    fit(json.loads(Path(file).read_text()), Path(folder))
    sys.exit(main(arguments))
