"""The peer of `npm run bench -- step`: tic-tac-toe in one bare process, without HTTP, Temporal or store.

Same model, same batch, same two sampled tokens a move, same loss as a run of Temper; everything else left out. It
batches all games that are still running in one forward pass and prints one JSON object: seconds by step and by part.
Shapes: B rows, T tokens, V vocabulary.
"""

import argparse
import json
import random
import time
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from peft import LoraConfig, get_peft_model
from torch import Tensor, nn
from transformers import AutoModelForCausalLM, AutoTokenizer

LINES = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]
MOVE_TOKENS = 2  # a digit, and the end of the turn


@dataclass
class Game:
    rng: random.Random
    # A move that is none is played on a free cell: for models of random weights, as bench/forgiving-agent.ts has it.
    forgiving: bool = False
    board: list[str] = field(default_factory=lambda: ["."] * 9)
    reward: float | None = None
    rows: list[tuple[Tensor, Tensor, Tensor]] = field(
        default_factory=list
    )  # prompt ids, sampled ids, their log-probabilities

    def play(self, answer: str) -> None:
        cell = self.named_cell(answer)
        if cell is None:
            self.reward = -1.0
            return
        self.board[cell] = "x"
        if has_won(self.board, "x"):
            self.reward = 1.0
        elif not (free := free_cells(self.board)):
            self.reward = 0.0
        else:
            self.board[self.rng.choice(free)] = "o"
            self.reward = -1.0 if has_won(self.board, "o") else None

    def named_cell(self, answer: str) -> int | None:
        free = free_cells(self.board)
        if self.forgiving:
            return free[sum(map(ord, answer)) % len(free)]
        return next((cell for cell in free if answer == str(cell + 1)), None)


def has_won(board: list[str], stone: str) -> bool:
    return any(all(board[cell] == stone for cell in line) for line in LINES)


def free_cells(board: list[str]) -> list[int]:
    return [cell for cell in range(9) if board[cell] == "."]


def render(board: list[str]) -> str:
    return "".join(str(i + 1) if cell == "." else cell for i, cell in enumerate(board))


class BareLoop:
    def __init__(
        self, folder: str, groups: int, group_size: int, learning_rate: float, forgiving: bool = False
    ) -> None:
        self.groups, self.group_size, self.forgiving = groups, group_size, forgiving
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        base = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
        self.model: nn.Module = get_peft_model(base, LoraConfig(r=16, lora_alpha=32, target_modules="all-linear"))
        self.trained = [p for p in self.model.parameters() if p.requires_grad]
        self.optimizer = torch.optim.AdamW(self.trained, learning_rate, betas=(0.9, 0.99), weight_decay=0.0)

    def prompt(self, board: list[str]) -> list[int]:
        messages = [{"role": "user", "content": render(board)}]
        return self.tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)

    @torch.no_grad()
    def generate(self, seed: int) -> list[Game]:
        games = [
            Game(random.Random(seed * 1000 + group), self.forgiving)
            for group in range(self.groups)
            for _ in range(self.group_size)
        ]
        while running := [game for game in games if game.reward is None]:
            prompts_BT = torch.tensor([self.prompt(game.board) for game in running])
            tokens_BT, logprobs_BT = self.sample(prompts_BT)
            for game, ids, tokens, logprobs in zip(running, prompts_BT, tokens_BT, logprobs_BT, strict=True):
                game.rows.append((ids, tokens, logprobs))
                game.play(self.tokenizer.decode(tokens[:1]))
        return games

    def sample(self, prompts_BT: Tensor) -> tuple[Tensor, Tensor]:
        ids_BT, logprobs = prompts_BT, []
        for _ in range(MOVE_TOKENS):
            logprobs_BV = F.log_softmax(self.model(ids_BT, logits_to_keep=1).logits[:, -1].float(), -1)
            token_B = torch.multinomial(logprobs_BV.exp(), 1)
            logprobs.append(logprobs_BV.gather(1, token_B))
            ids_BT = torch.cat([ids_BT, token_B], 1)
        return ids_BT[:, -MOVE_TOKENS:], torch.cat(logprobs, 1)

    def update(self, games: list[Game]) -> None:
        rewards = torch.tensor([game.reward for game in games]).view(self.groups, self.group_size)
        advantages = (rewards - rewards.mean(1, keepdim=True)).flatten().tolist()
        rows = [(*row, advantage) for game, advantage in zip(games, advantages, strict=True) for row in game.rows]
        ids_BT = torch.stack([torch.cat([prompt, tokens]) for prompt, tokens, _, _ in rows])
        sampled_BT = torch.stack([logprobs for _, _, logprobs, _ in rows])
        advantages_B1 = torch.tensor([advantage for *_, advantage in rows])[:, None]
        logits_BTV = self.model(ids_BT[:, :-1], logits_to_keep=MOVE_TOKENS).logits.float()
        logprobs_BT = F.log_softmax(logits_BTV, -1).gather(2, ids_BT[:, -MOVE_TOKENS:, None])[..., 0]
        ratio_BT = (logprobs_BT - sampled_BT).exp().detach().clamp(0, 5)
        (-(ratio_BT * advantages_B1 * logprobs_BT).mean()).backward()
        nn.utils.clip_grad_norm_(self.trained, 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--groups", type=int, default=8)
    parser.add_argument("--group-size", type=int, default=16)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--learning-rate", type=float, default=5e-3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--forgiving", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    loop = BareLoop(options.model, options.groups, options.group_size, options.learning_rate, options.forgiving)
    seconds: dict[str, list[float]] = {"generate": [], "update": []}
    moves = []
    for step in range(options.steps + 1):
        started = time.perf_counter()
        games = loop.generate(step)
        played = time.perf_counter()
        loop.update(games)
        if step == 0:
            continue  # the first step warms up
        seconds["generate"].append(played - started)
        seconds["update"].append(time.perf_counter() - played)
        moves.append(sum(len(game.rows) for game in games))
    print(json.dumps({"seconds": seconds, "moves": moves}))


if __name__ == "__main__":
    main()
