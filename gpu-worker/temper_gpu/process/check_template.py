"""Whether a chat template suits a base model; without one, the model's own is tried.

Reads the model's tokenizer and config. Answers what the template leaves out, in words, and whether it writes the day's
date.
"""

from typing import Any

from temper_gpu.contract import CheckTemplateInput
from temper_gpu.process.described_model import find, prompts_of, read_template


def run(work: CheckTemplateInput) -> dict[str, Any]:
    prompts = prompts_of(work.model, find(work.model, work.source).folder, read_template(work.chat_template))
    return {"gaps": prompts.gaps(), "readsClock": prompts.reads_clock}
