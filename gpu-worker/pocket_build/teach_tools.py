"""The second part of the warm start: conversations with tools, while what was learned before is kept up.

Shapes: B rows, T tokens.
"""

import json
import random
from typing import Any

import torch
from transformers import PreTrainedTokenizerFast, Qwen2ForCausalLM
from transformers.cache_utils import Cache, DynamicCache

from pocket_build.dialogues import draw_dialogue
from pocket_build.supervised import (
    NOT_TRAINED,
    Row,
    falling,
    optimizer_for,
    supervised_loss,
    tokeniser,
    update,
)
from pocket_build.tokenizer import END
from pocket_build.tool_dialogues import TOOLS, ToolDialogue, draw_tool_dialogue

TOOL_ROWS, KEPT_ROWS = 16, 16
PEAK_LR = 4e-3
# Copied tokens are about ten of some 130 in a conversation, and all others are soon certain, so the mean over tokens
# would leave next to nothing of their gradient.
TOKENS_IN_QUESTION = 12
# The tools are described in 480 tokens, the conversation has 150: copying is learned without them, in half the time.
WITHOUT_SYSTEM_PART = 0.6
SCHOOLED_PART, FALLING_PART = 0.7, 0.1


def teach_tools(
    model: Qwen2ForCausalLM, tokenizer: PreTrainedTokenizerFast, rng: random.Random, steps: int, kept_share: float
) -> None:
    """`kept_share` of the rows that keep up old skills are tic-tac-toe, all of them by the mediocre player."""
    optimizer, schedule = optimizer_for(model, PEAK_LR, steps)
    tokenise = tokeniser(tokenizer)
    system_T = system_turn(tokenizer)
    for step in range(steps):
        progress = step / steps
        kept_rows = [tokenise(draw_dialogue(rng, kept_share, 0.0)) for _ in range(KEPT_ROWS)]
        supervised_loss(model, kept_rows).backward()
        schooling = falling(progress, SCHOOLED_PART, FALLING_PART)
        rows = [tokenise_turns(tokenizer, draw_tool_dialogue(rng, schooling)) for _ in range(TOOL_ROWS)]
        cache = None if progress < WITHOUT_SYSTEM_PART else prefix_cache(model, system_T, TOOL_ROWS)
        loss = supervised_loss(model, rows, cache)
        num_learned = sum(int((labels_T != NOT_TRAINED).sum()) for _, labels_T in rows)
        (loss * (num_learned / (TOOL_ROWS * TOKENS_IN_QUESTION))).backward()
        update(model, optimizer, schedule)
        if step % 50 == 49:
            print(f"tools, step {step + 1} of {steps}: {loss.item():.4f} nats per token", flush=True)


def system_turn(tokenizer: PreTrainedTokenizerFast) -> list[int]:
    messages = [{"role": "user", "content": ""}]
    alone, whole = (render(tokenizer, messages, tools) for tools in (None, TOOLS))
    return whole[: len(whole) - len(alone)]


def tokenise_turns(tokenizer: PreTrainedTokenizerFast, dialogue: ToolDialogue) -> Row:
    """Tokenises without the system turn; training begins after `<|assistant|>` and ends with the turn."""
    assistant, end = (int(tokenizer.convert_tokens_to_ids(token)) for token in ("<|assistant|>", END))
    tokens_T = render(tokenizer, json.loads(dialogue.conversation)["messages"], None)
    labels_T, is_learned = [], False
    for token in tokens_T:
        labels_T.append(token if is_learned else NOT_TRAINED)
        is_learned = (is_learned or token == assistant) and token != end
    return torch.tensor(tokens_T), torch.tensor(labels_T)


def render(tokenizer: PreTrainedTokenizerFast, messages: list[dict[str, Any]], tools: Any) -> list[int]:
    tokens_T: Any = tokenizer.apply_chat_template(messages, tools=tools, return_dict=False)
    return tokens_T


def prefix_cache(model: Qwen2ForCausalLM, tokens_T: list[int], num_rows: int) -> Cache:
    """The same beginning for all rows, computed once; gradients go through it."""
    once = model(torch.tensor([tokens_T]), use_cache=True, logits_to_keep=1).past_key_values
    shared = DynamicCache(config=model.config)
    for index, layer in enumerate(once.layers):
        keys, values = (part.expand(num_rows, -1, -1, -1) for part in (layer.keys, layer.values))
        shared.update(keys, values, index)
    return shared
