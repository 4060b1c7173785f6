"""A chat template in the place of a model's own, from the first check to the first step."""

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoTokenizer

from temper_gpu.commits.templates import StoredTemplates
from temper_gpu.contract import EngineSettings, LoraConfig
from temper_gpu.engine.embedded.settings import EmbeddedSettings
from temper_gpu.failures import TemperError
from temper_gpu.model.models import POCKET_FOLDER, ModelLibrary
from temper_gpu.process.compose import check_run
from temper_gpu.process.needs import Machine
from temper_gpu.server.chat_turns import ChatTurns
from temper_gpu.store import FileStore
from tests.failing import failing
from tests.process.programs import answered
from tests.process.test_plan import planned
from tests.server.templates import QWEN, WITHOUT_TOOLS
from tests.training.samples import initialise_input

CPU = torch.device("cpu")
MACHINE = Machine(CPU, torch.float32, EmbeddedSettings())


def begin(
    store: FileStore,
    models: ModelLibrary | None = None,
    machine: Machine = MACHINE,
    template: str | None = None,
    **work: Any,
) -> None:
    """Checks a run of the pocket model, or of another, before it begins."""
    models, templates = models or ModelLibrary(dict, torch.float32, CPU), StoredTemplates(store)
    sha256 = template and store.put_blob(template.encode()).sha256
    asked = initialise_input(**{"base_model": "pocket", "chat_template_sha256": sha256, **work})
    check_run(models, store, templates, ChatTurns(templates.text), machine, asked)


def with_settings(**settings: Any) -> Machine:
    return replace(MACHINE, settings=EngineSettings(**settings))


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """The pocket model without a chat template."""
    return shutil.copytree(POCKET_FOLDER, tmp_path / "bare", ignore=shutil.ignore_patterns("*.jinja"))


def written(folder: Path, template: str) -> str:
    (folder / "chat.jinja").write_text(template)
    return str(folder / "chat.jinja")


def test_the_program_tells_what_a_template_leaves_out(tmp_path: Path, bare: Path, capsys: pytest.CaptureFixture[str]):
    model = {"model": "bare", "source": str(bare)}
    assert answered("check_template", **model, chatTemplate=written(tmp_path, QWEN)) == 0
    assert json.loads(capsys.readouterr().out) == {
        "gaps": ["it leaves out names of messages"],
        "readsClock": False,
    }
    assert answered("check_template", **model, chatTemplate=written(tmp_path, WITHOUT_TOOLS)) == 0
    assert "leaves tools out" in json.loads(capsys.readouterr().out)["gaps"][-1]
    assert answered("check_template", **model, chatTemplate=written(tmp_path, "\n{% for %}")) == 2
    assert "BadConfig: the chat template that was given for model bare must" in (told := capsys.readouterr().err)
    assert "it fails in line 2 (" in told


def test_without_a_template_the_program_tries_the_models_own(bare: Path, capsys: pytest.CaptureFixture[str]):
    assert answered("check_template", model="pocket") == 0
    assert "names of messages" in json.loads(capsys.readouterr().out)["gaps"][0]
    assert answered("check_template", model="bare", source=str(bare)) == 2
    assert "BadConfig: model bare must have a chat template" in capsys.readouterr().err


def test_the_plan_of_a_model_is_that_with_the_template(tmp_path: Path, bare: Path, capsys: pytest.CaptureFixture[str]):
    usual = {"model": "bare", "source": str(bare), "context": 64}
    assert "pass one with --chat-template FILE" in planned(capsys, **usual)["refusal"]
    told = planned(capsys, **usual, chat_template=written(tmp_path, QWEN))
    assert (told["refusal"], told["templateGaps"]) == (None, ["it leaves out names of messages"])


def with_token_beyond(folder: Path) -> Path:
    """To whose tokenizer a token was added alone; its template opens answers with it."""
    shutil.copytree(POCKET_FOLDER, folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|new|>"]})
    tokenizer.chat_template = tokenizer.chat_template.replace("'<|assistant|>'", "'<|new|><|assistant|>'")
    tokenizer.save_pretrained(folder)
    return folder


def with_another_end(folder: Path) -> Path:
    """All of whose files name another end than its template writes."""
    shutil.copytree(POCKET_FOLDER, folder)
    end = {"eos_token_id": 256}
    for name, change in [
        ("config.json", end),
        ("generation_config.json", end),
        ("tokenizer_config.json", {"eos_token": "<|endoftext|>"}),
    ]:
        (folder / name).write_text(json.dumps(json.loads((folder / name).read_text()) | change))
    return folder


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            with_token_beyond,
            r"must be below 264, the size of odd's vocabulary, got 264 \(<\|new\|>, which .* no embedding for",
        ),
        (
            with_another_end,
            r"must end an answer with a token .* \(<\|endoftext\|>\), it writes <\|end\|>.* add 261 to eos",
        ),
    ],
)
def test_a_model_whose_template_writes_what_it_cannot_sample_is_refused_before_a_run_and_by_its_plan(
    make: Callable[[Path], Path], words: str, tmp_path: Path, store: FileStore, capsys: pytest.CaptureFixture[str]
):
    folder = make(tmp_path / "odd")
    models = ModelLibrary(lambda: {"odd": str(folder)}, torch.float32, CPU)
    with failing("BadConfig", words):
        begin(store, models, base_model="odd")
    assert re.search(words, planned(capsys, model="odd", source=str(folder), context=64)["refusal"])
    assert answered("check_template", model="odd", source=str(folder)) == 2
    assert re.search(words, capsys.readouterr().err)


def test_a_run_does_not_begin_without_a_template_that_works(store: FileStore, bare: Path):
    models = ModelLibrary(lambda: {"bare": str(bare)}, torch.float32, CPU)
    begin(store, models, template=QWEN, base_model="bare")
    for broken, reason in [(None, "model bare must have a chat template"), ("x\n{{ y.z }}", "fails in line 2")]:
        with failing("BadConfig", reason):
            begin(store, models, template=broken, base_model="bare")


DATED = "{%- if day is not defined -%}{%- set day = strftime_now('%d %B %Y') -%}{%- endif -%}Today: {{ day }}." + QWEN


def test_a_run_whose_template_writes_the_date_names_the_day(
    tmp_path: Path, store: FileStore, capsys: pytest.CaptureFixture[str]
):
    """As Llama 3's templates do, unless a variable says the day."""
    for kwargs in ({"strftime_now": "2024-07-26"}, {"day": "26 July 2024"}):
        begin(store, template=DATED, chat_template_kwargs=kwargs)
    for kwargs, words in [
        (None, r"same on every day, .* pocket writes the date; .*--chat-template-kwargs '{\"strftime_now\": \"20"),
        ({"strftime_now": "tomorrow"}, 'must set strftime_now to a day, got "tomorrow"; write it as YYYY-MM-DD'),
    ]:
        with pytest.raises(TemperError, match=words):
            begin(store, template=DATED, chat_template_kwargs=kwargs)
    assert answered("check_template", model="pocket", chatTemplate=written(tmp_path, DATED)) == 0
    assert json.loads(capsys.readouterr().out)["readsClock"] is True


@pytest.mark.parametrize(
    ("load_in_4bit", "machine", "reason"),
    [
        (
            False,
            with_settings(devices=2, shard_base_model=True),
            "only frozen weights are sharded; start the GPU worker",
        ),
        (True, with_settings(load_in4bit=True), "pocket is loaded in 4 bits; start the GPU worker without"),
    ],
)
def test_a_run_that_trains_all_weights_does_not_begin_where_the_base_model_is_not_whole(
    load_in_4bit: bool, machine: Machine, reason: str, store: FileStore
):
    models = ModelLibrary(dict, torch.float32, CPU, load_in_4bit=load_in_4bit)
    with pytest.raises(TemperError, match=reason):
        begin(store, models, machine, lora=None)


def test_a_run_does_not_begin_with_an_optimizer_that_has_nothing_to_pack(store: FileStore):
    for lora in (None, LoraConfig(rank=64, alpha=64, target_modules=None)):
        begin(store, lora=lora, optimizer_kind="adamw_8bit")
    with pytest.raises(TemperError, match=r"--optimizer adamw_8bit needs .* the largest of 28 has 384; leave it out"):
        begin(store, lora=LoraConfig(rank=2, alpha=2, target_modules=None), optimizer_kind="adamw_8bit")
