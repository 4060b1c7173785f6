"""Chat templates: a model's own, or one that replaces it (`--chat-template`). server/prompts.py checks what a template
leaves out, and how it writes tools."""

import traceback
from typing import Any

from temper_gpu.failures import TemperError

ASKED, ANSWERED = "a question", "an answer"
PLAIN_CONVERSATION = [
    {"role": "user", "content": ASKED},
    {"role": "assistant", "content": ANSWERED},
    {"role": "user", "content": ASKED},
]
# Name in tracebacks of a template without a file.
NO_FILE = "<template>"
MAX_REASON = 300


def decode_template(data: bytes) -> str:
    """Decodes without a byte order mark, which editors may write."""
    return data.decode("utf-8-sig")


def check_template(model: str, tokenizer: Any, given: str | None = None) -> None:
    """One that fails on a plain conversation fails in every call. `given`: in the place of the model's own."""
    if given is None and not tokenizer.chat_template:
        raise missing_template(model)
    try:
        text = tokenizer.apply_chat_template(
            PLAIN_CONVERSATION, chat_template=given, add_generation_prompt=True, tokenize=False
        )
    except Exception as error:  # whatever a template raises
        raise _unfit(model, given, f"fails{_place_of(error)} ({_reason(error)})") from error
    if text.count(ASKED) < 2:
        raise _unfit(model, given, "leaves out what the user says")
    if ANSWERED not in text:
        raise _unfit(model, given, "leaves out what the model said before")


def missing_template(model: str) -> TemperError:
    return TemperError(
        "BadConfig",
        f"model {model} must have a chat template, but its tokenizer has none; pass one with --chat-template FILE, or "
        "use the -Instruct or -Chat edition",
    )


def _unfit(model: str, given: str | None, reason: str) -> TemperError:
    if given is None:
        subject = f"the chat template of model {model}"
        remedy = "pass another one with --chat-template FILE, or use another model"
    else:
        subject, remedy = f"the chat template that was given for model {model}", "correct the file"
    return TemperError(
        "BadConfig", f"{subject} must write a conversation of user and assistant, but it {reason}; {remedy}"
    )


def _place_of(error: Exception) -> str:
    """A template's own line, where it is known: of a syntax error, or of what was being rendered."""
    line = getattr(error, "lineno", None)
    if line is None:
        frames = traceback.extract_tb(error.__traceback__)
        line = next((frame.lineno for frame in reversed(frames) if frame.filename == NO_FILE), None)
    return "" if line is None else f" in line {line}"


def _reason(error: Exception) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".")[:MAX_REASON] or type(error).__name__
