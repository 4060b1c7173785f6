"""A model that answers as it was told: the pocket model, fitted in seconds to a few conversations.

What it says is sampled by the real engine from real weights, so that tests of whole paths know what comes.
As a program: python -m tests.server.fitted FOLDER < {"conversations": [{"tools": […], "messages": […]}, …]}
Shapes: B rows, T tokens.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence
from transformers import AutoModelForCausalLM

from temper_gpu.models import POCKET, POCKET_FOLDER, load_base
from temper_gpu.prompts import Prompts
from temper_gpu.training.groups import Call
from temper_gpu.training.rows import Row, attempt_rows

END_OF_TURN = "<|end|>"
NOT_TRAINED = -100
MAX_STEPS, LEARNING_RATE = 400, 6e-3
# Of the least likely token: far from any tie, so greedy answers are right on every machine.
ENOUGH = 0.8


def fit(conversations: Sequence[dict[str, Any]], folder: Path) -> None:
    """Each with `messages` and perhaps `tools`; an assistant's `text` is what it is to say, exactly as sampled."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    base = load_base(POCKET, str(POCKET_FOLDER), torch.float32, torch.device("cpu"))
    model = AutoModelForCausalLM.from_pretrained(POCKET_FOLDER)
    tokens_BT, labels_BT = batch([row for each in conversations for row in rows_of(Prompts(base), each)])
    optimizer = torch.optim.AdamW(model.parameters(), LEARNING_RATE, weight_decay=0.0)
    for _ in range(MAX_STEPS):
        losses_T = F.cross_entropy(
            model(tokens_BT[:, :-1]).logits.flatten(0, 1), labels_BT[:, 1:].flatten(), reduction="none"
        )
        if losses_T.max().neg().exp() > ENOUGH:
            model.save_pretrained(folder)
            base.tokenizer.save_pretrained(folder)
            return
        losses_T.sum().div((labels_BT[:, 1:] != NOT_TRAINED).sum()).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    raise RuntimeError(f"not fitted after {MAX_STEPS} steps")


def rows_of(prompts: Prompts, conversation: dict[str, Any]) -> list[Row]:
    return attempt_rows(list(calls_of(prompts, conversation)), 1.0)


def calls_of(prompts: Prompts, conversation: dict[str, Any]) -> Iterator[Call]:
    messages = conversation["messages"]
    for index, message in enumerate(messages):
        if message["role"] == "assistant":
            prompt = prompts.encode([without_text(each) for each in messages[:index]], conversation.get("tools"))
            sampled = prompts.tokenise(message["text"] + END_OF_TURN)
            yield Call(list(prompt), sampled, [0.0] * len(sampled), 1.0, None)


def without_text(message: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in message.items() if name != "text"}


def batch(rows: Sequence[Row]) -> tuple[torch.Tensor, torch.Tensor]:
    labels = [torch.full((len(row.token_ids),), NOT_TRAINED) for row in rows]
    for row, label_T in zip(rows, labels, strict=True):
        label_T[row.positions] = torch.tensor([row.token_ids[t] for t in row.positions])
    tokens = [torch.tensor(row.token_ids) for row in rows]
    return pad_sequence(tokens, True), pad_sequence(labels, True, NOT_TRAINED)


if __name__ == "__main__":
    fit(json.load(sys.stdin)["conversations"], Path(sys.argv[1]))
