"""The pocket model as it is shipped: tokenizer, template, and that it is mediocre. B boards, T tokens, V vocabulary."""

import random
import unicodedata

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoModelForCausalLM, AutoTokenizer

from pocket_build import dialogues
from pocket_build.tokenizer import CHAT_TEMPLATE
from temper_gpu.model.models import POCKET_FOLDER

MAX_BYTES = 4 * 1024 * 1024

TOOLS = [
    {
        "type": "function",
        "function": {"name": "look", "description": "Look at a cell.", "parameters": {"type": "object"}},
    }
]
CALL = {"id": "1", "type": "function", "function": {"name": "look", "arguments": {"cell": 5}}}
CONVERSATION = [
    {"role": "system", "content": "Play well."},
    {"role": "user", "content": "123456789"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "content": "free", "tool_call_id": "1"},
    {"role": "assistant", "content": "5"},
]

tokenizer = AutoTokenizer.from_pretrained(POCKET_FOLDER)
# Characters that UTF-8 can write: all but the halves of surrogate pairs.
any_text = st.text(st.characters(exclude_categories=["Cs"]))
any_message = st.builds(
    lambda role, text: {"role": role, "content": text}, st.sampled_from(["user", "assistant", "tool"]), any_text
)


@pytest.fixture(scope="module")
def model():
    torch.set_num_threads(1)  # at this size a second thread only waits
    return AutoModelForCausalLM.from_pretrained(POCKET_FOLDER)


def render(messages, **options):
    return tokenizer.apply_chat_template(messages, tokenize=False, **options)


@given(any_text)
def test_any_text_survives_encoding_and_decoding(text):
    """In normal form C, into which transformers' tokenizer of Qwen2 brings all text."""
    assert tokenizer.decode(tokenizer.encode(text)) == unicodedata.normalize("NFC", text)


# Without "<" no special token can stand in it.
@given(st.text(st.characters(max_codepoint=127, exclude_characters="<")))
def test_a_token_id_is_the_byte_it_stands_for(text):
    assert tokenizer.encode(text) == list(text.encode())


def test_the_form_of_a_conversation_is_single_tokens():
    ids = tokenizer.apply_chat_template(
        [{"role": "user", "content": "7*8="}], add_generation_prompt=True, return_dict=False
    )
    assert tokenizer.convert_ids_to_tokens(ids) == ["<|user|>", "7", "*", "8", "=", "<|end|>", "<|assistant|>"]


def test_turns_end_by_the_end_token():
    assert tokenizer.eos_token == "<|end|>"
    assert tokenizer.pad_token == "<|endoftext|>"


def test_tool_calls_survive_decoding_and_control_tokens_do_not():
    ids = tokenizer.encode("<tool_call>{}</tool_call><|end|>")
    assert tokenizer.decode(ids, skip_special_tokens=True) == "<tool_call>{}</tool_call>"


def test_all_roles_tools_and_tool_calls_are_rendered():
    system, rest = render(CONVERSATION, tools=TOOLS).split("<|end|>", 1)
    assert system.startswith("<|system|>Play well.\n\n# Tools\n")
    assert '\n<tools>\n{"type": "function", "function": {"name": "look"' in system
    assert system.endswith("}}\n</tools>")
    assert rest == (
        '<|user|>123456789<|end|><|assistant|><tool_call>{"name": "look", "arguments": {"cell": 5}}</tool_call><|end|>'
        "<|tool|>free<|end|><|assistant|>5<|end|>"
    )


def test_arguments_given_as_text_are_rendered_as_they_are():
    call = {"function": {"name": "look", "arguments": '{"cell":5}'}}
    assert '"arguments": {"cell":5}}</tool_call>' in render(
        [{"role": "assistant", "content": "", "tool_calls": [call]}]
    )


def test_tools_without_a_system_message_have_a_system_turn():
    assert render(CONVERSATION[1:], tools=TOOLS).startswith("<|system|># Tools\n")


def test_content_in_text_parts_is_joined():
    parts = [{"type": "text", "text": "7*"}, {"type": "text", "text": "8="}]
    assert render([{"role": "user", "content": parts}]) == "<|user|>7*8=<|end|>"


@pytest.mark.parametrize(
    "message", [{"role": "judge", "content": "1.0"}, {"role": "user", "content": [{"type": "image_url"}]}]
)
def test_what_cannot_be_read_is_refused(message):
    with pytest.raises(Exception, match="role must be system|reads text only"):
        render([message])


@given(st.lists(any_message, min_size=1, max_size=6), st.booleans())
def test_a_longer_conversation_extends_the_ids_of_a_shorter_one(messages, with_tools):
    options = {"tools": TOOLS if with_tools else None, "return_dict": False}
    for length in range(1, len(messages)):
        is_answered = messages[length]["role"] == "assistant"
        shorter = tokenizer.apply_chat_template(messages[:length], add_generation_prompt=is_answered, **options)
        assert tokenizer.apply_chat_template(messages, **options)[: len(shorter)] == shorter


def test_a_tool_conversation_extends_its_prompts():
    whole = render(CONVERSATION, tools=TOOLS)
    for length in (2, 4):
        assert whole.startswith(render(CONVERSATION[:length], tools=TOOLS, add_generation_prompt=True))


def test_the_folder_is_small_and_holds_no_pickle():
    files = [path for path in POCKET_FOLDER.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= MAX_BYTES
    assert {path.suffix for path in files} == {".json", ".jinja", ".safetensors"}


def test_the_template_beside_the_code_is_the_one_shipped():
    assert (POCKET_FOLDER / "chat_template.jinja").read_text() == CHAT_TEMPLATE.read_text()


def test_most_moves_are_legal_and_play_is_mediocre(model):
    torch.manual_seed(0)
    games = [Game(seed) for seed in range(200)]
    while running := [game for game in games if game.result is None]:
        for game, reply in zip(running, sample_moves(model, [game.board for game in running]), strict=True):
            game.advance(reply)
    num_illegal = sum(game.result == "illegal" for game in games)
    assert 1 - num_illegal / sum(game.num_moves for game in games) >= 0.8
    assert 0.35 <= sum(game.result == "won" for game in games) / len(games) <= 0.7


class Game:
    """The model plays x and moves first; the opponent places its stones at random."""

    def __init__(self, seed):
        self.board, self.num_moves, self.result, self.opponent = dialogues.FREE * 9, 0, None, random.Random(seed)

    def advance(self, reply):
        self.num_moves += 1
        if reply not in [f"{cell + 1}<|end|>" for cell in dialogues.free_cells(self.board)]:
            self.result = "illegal"
            return
        self.board = dialogues.place(self.board, int(reply[0]) - 1, "x")
        if not dialogues.has_won(self.board, "x") and (free := dialogues.free_cells(self.board)):
            self.board = dialogues.place(self.board, self.opponent.choice(free), "o")
        self.result = self.outcome()

    def outcome(self):
        if dialogues.has_won(self.board, "x"):
            return "won"
        if dialogues.has_won(self.board, "o"):
            return "lost"
        return None if dialogues.free_cells(self.board) else "draw"


@torch.no_grad()
def sample_moves(model, boards):
    tokens_BT = prompts_BT = torch.tensor([ids_of(dialogues.render_board(board)) for board in boards])
    for _ in range(2):
        probabilities_BV = model(tokens_BT, logits_to_keep=1).logits[:, -1].softmax(-1)
        tokens_BT = torch.cat([tokens_BT, torch.multinomial(probabilities_BV, 1)], 1)
    return tokenizer.batch_decode(tokens_BT[:, prompts_BT.shape[1] :])


def test_multiplication_is_mediocre(model):
    pairs = [(left, right) for left in dialogues.OPERANDS for right in dialogues.OPERANDS]
    right = [probability(model, f"{left}*{right}=", str(left * right)) for left, right in pairs]
    assert 0.15 <= sum(right) / len(right) <= 0.5


@torch.no_grad()
def probability(model, prompt, reply):
    prompt_T, reply_T = ids_of(prompt), tokenizer.encode(reply + "<|end|>")
    logprobs_TV = model(torch.tensor([prompt_T + reply_T])).logits[0].log_softmax(-1)
    places = range(len(prompt_T) - 1, len(prompt_T) + len(reply_T) - 1)
    return logprobs_TV[places, reply_T].sum().exp().item()


def ids_of(prompt):
    messages = [{"role": "user", "content": prompt}]
    return tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
