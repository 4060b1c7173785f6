"""Templates that cannot write a plain conversation: refused before a run begins, with the line."""

import copy
from typing import Any

import pytest
from transformers import AutoTokenizer

from temper_gpu.failures import TemperError
from temper_gpu.model.chat_templates import check_template, decode_template
from temper_gpu.model.models import POCKET_FOLDER
from tests.failing import failing

SAYS_ALL = "{% for message in messages %}{{ message.content }}{% endfor %}"


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return AutoTokenizer.from_pretrained(POCKET_FOLDER)


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("{{ raise_exception('no') }}", r"it fails in line 1 \(no\)"),
        ("hello\n{% if %}", r"it fails in line 2 \("),
        ("hello\n\n{{ messages[7].content.x }}", r"it fails in line 3 \("),
        ("{% for m in messages if m.role != 'user' %}{{ m.content }}{% endfor %}", "it leaves out what the user says"),
        ("{{ messages[-1].content }}", "it leaves out what the user says"),
        ("{% for m in messages if m.role == 'user' %}{{ m.content }}{% endfor %}", "leaves out what the model said"),
    ],
)
def test_a_template_that_cannot_write_a_plain_conversation_is_refused(tokenizer: Any, template: str, reason: str):
    with failing("BadConfig", f"given for model pocket must write .*{reason}.*; correct the file"):
        check_template("pocket", tokenizer, template)
    own = copy.deepcopy(tokenizer)
    own.chat_template = template
    with pytest.raises(TemperError, match=f"template of model m must .*{reason}.*; pass another one with --chat-temp"):
        check_template("m", own)
    check_template("m", own, SAYS_ALL)


def test_a_model_without_a_template_needs_one(tokenizer: Any):
    bare = copy.deepcopy(tokenizer)
    bare.chat_template = None
    with pytest.raises(TemperError, match="m must have a chat template, .* none; pass one with --chat-template FILE"):
        check_template("m", bare)
    check_template("m", bare, SAYS_ALL)


def test_a_mark_of_the_byte_order_is_no_part_of_a_template():
    assert decode_template(b"\xef\xbb\xbfhello") == "hello"
