"""Synthetic dialogues of the two examples, played by someone mediocre: a prompt, and one reply to it.

The reply is drawn from a fixed mixture of a skilled, an ordinary and a careless player. The mixture is what makes the
model mediocre: it knows good moves and right answers, but gives them only among worse ones, so reinforcement has
something to sharpen. `schooling` replaces a share of the replies by the skilled player's: at 1 there are no others.
"""

import random
from typing import NamedTuple

LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))
FREE = "."

# Share of moves by a player who takes a win and blocks a loss, and by one who does not look whether the cell is free.
SKILLED_SHARE, CARELESS_SHARE = 0.15, 0.10
# Stones on the board when it is x's turn, and how often each is drawn: one empty board, but hundreds of middle games.
STONES, STONES_WEIGHTS = (0, 2, 4, 6, 8), (1, 4, 6, 6, 2)

OPERANDS = range(2, 13)
# The usual mistake is to add instead of to multiply; the others are slips.
RIGHT_SHARE, ADDING_SHARE = 0.30, 0.60


class Dialogue(NamedTuple):
    prompt: str
    reply: str


def draw_dialogue(rng: random.Random, tic_tac_toe_share: float, schooling: float) -> Dialogue:
    is_tic_tac_toe, is_schooled = rng.random() < tic_tac_toe_share, rng.random() < schooling
    return tic_tac_toe_dialogue(rng, is_schooled) if is_tic_tac_toe else multiplication_dialogue(rng, is_schooled)


def tic_tac_toe_dialogue(rng: random.Random, is_schooled: bool) -> Dialogue:
    board = random_board(rng)
    cell = skilled_move(board, rng) if is_schooled else mediocre_move(board, rng)
    return Dialogue(render_board(board), str(cell + 1))


def render_board(board: str) -> str:
    """A free cell shows its own number (`1x34o6789`): the rendering that is learned fastest."""
    return "".join(str(cell + 1) if stone == FREE else stone for cell, stone in enumerate(board))


def random_board(rng: random.Random) -> str:
    """A board with x to move, on which nobody has won."""
    [num_stones] = rng.choices(STONES, STONES_WEIGHTS)
    while True:
        board = FREE * 9
        for turn, cell in enumerate(rng.sample(range(9), num_stones)):
            board = place(board, cell, "xo"[turn % 2])
        if not (has_won(board, "x") or has_won(board, "o")):
            return board


def mediocre_move(board: str, rng: random.Random) -> int:
    player = rng.random()
    if player < CARELESS_SHARE:
        return rng.randrange(9)
    if player < CARELESS_SHARE + SKILLED_SHARE:
        return skilled_move(board, rng)
    return rng.choice(free_cells(board))


def skilled_move(board: str, rng: random.Random) -> int:
    return rng.choice(winning_cells(board, "x") or winning_cells(board, "o") or free_cells(board))


def free_cells(board: str) -> list[int]:
    return [cell for cell, stone in enumerate(board) if stone == FREE]


def winning_cells(board: str, stone: str) -> list[int]:
    return [cell for cell in free_cells(board) if has_won(place(board, cell, stone), stone)]


def place(board: str, cell: int, stone: str) -> str:
    return board[:cell] + stone + board[cell + 1 :]


def has_won(board: str, stone: str) -> bool:
    return any(board[a] == board[b] == board[c] == stone for a, b, c in LINES)


def multiplication_dialogue(rng: random.Random, is_schooled: bool) -> Dialogue:
    left, right = rng.choice(OPERANDS), rng.choice(OPERANDS)
    answer = left * right if is_schooled else mediocre_answer(left, right, rng)
    return Dialogue(f"{left}*{right}=", str(answer))


def mediocre_answer(left: int, right: int, rng: random.Random) -> int:
    pupil = rng.random()
    if pupil < RIGHT_SHARE:
        return left * right
    if pupil < RIGHT_SHARE + ADDING_SHARE:
        return left + right
    return rng.choice(near_misses(left, right))


def near_misses(left: int, right: int) -> list[int]:
    """The mistakes people make: a row too far in the table, a slip in the last digit, ten too many or too few."""
    product = left * right
    slips = {product + slip for slip in (-left, left, -right, right, -1, 1, -2, 2, -10, 10)}
    return sorted(slip for slip in slips if slip > 0)
