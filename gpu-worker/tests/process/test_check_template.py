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
from temper_gpu.process import check_template
from temper_gpu.process.compose import check_run
from temper_gpu.process.needs import Machine
from temper_gpu.server.chat_turns import ChatTurns
from temper_gpu.store import FileStore
from tests.process.test_plan import planned
from tests.server.templates import QWEN, WITHOUT_TOOLS
from tests.training.samples import initialise_input

MACHINE = Machine(torch.device("cpu"), torch.float32, EmbeddedSettings())


def with_settings(**settings: Any) -> Machine:
    return replace(MACHINE, settings=EngineSettings(**settings))


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """The pocket model without a chat template."""
    return shutil.copytree(POCKET_FOLDER, tmp_path / "bare", ignore=shutil.ignore_patterns("*.jinja"))


def written(folder: Path, template: str) -> str:
    (folder / "chat.jinja").write_text(template)
    return f"--chat-template={folder / 'chat.jinja'}"


def test_the_program_tells_what_a_template_leaves_out(tmp_path: Path, bare: Path, capsys: pytest.CaptureFixture[str]):
    model = ["--model=bare", f"--source={bare}"]
    assert check_template.main([*model, written(tmp_path, QWEN)]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "gaps": ["it leaves out names of messages"],
        "readsClock": False,
    }
    assert check_template.main([*model, written(tmp_path, WITHOUT_TOOLS)]) == 0
    assert "leaves tools out" in json.loads(capsys.readouterr().out)["gaps"][-1]
    assert check_template.main([*model, written(tmp_path, "\n{% for %}")]) == 2
    assert "BadConfig: the chat template that was given for model bare must" in (told := capsys.readouterr().err)
    assert "it fails in line 2 (" in told


def test_without_a_template_the_program_tries_the_models_own(bare: Path, capsys: pytest.CaptureFixture[str]):
    assert check_template.main(["--model=pocket"]) == 0
    assert "names of messages" in json.loads(capsys.readouterr().out)["gaps"][0]
    assert check_template.main(["--model=bare", f"--source={bare}"]) == 2
    assert "BadConfig: model bare must have a chat template" in capsys.readouterr().err


def test_the_plan_of_a_model_is_that_with_the_template(tmp_path: Path, bare: Path, capsys: pytest.CaptureFixture[str]):
    usual = {"model": "bare", "source": str(bare), "context": 64}
    assert "pass one with --chat-template FILE" in planned(capsys, **usual)["refusal"]
    told = planned(capsys, **usual, chat_template=written(tmp_path, QWEN).removeprefix("--chat-template="))
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
    make: Callable[[Path], Path], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    folder, store = make(tmp_path / "odd"), FileStore(tmp_path / "store")
    models = ModelLibrary(lambda: {"odd": str(folder)}, torch.float32, torch.device("cpu"))
    templates = StoredTemplates(store)
    with pytest.raises(TemperError, match=words) as caught:
        check_run(models, store, templates, ChatTurns(templates.text), MACHINE, initialise_input(base_model="odd"))
    assert caught.value.type == "BadConfig"
    named = ["--model=odd", f"--source={folder}"]
    assert re.search(words, planned(capsys, model="odd", source=str(folder), context=64)["refusal"])
    assert check_template.main(named) == 2
    assert re.search(words, capsys.readouterr().err)


def test_a_run_does_not_begin_without_a_template_that_works(tmp_path: Path, bare: Path):
    store = FileStore(tmp_path / "store")
    models = ModelLibrary(lambda: {"bare": str(bare)}, torch.float32, torch.device("cpu"))
    templates = StoredTemplates(store)

    def check(template: str | None) -> None:
        sha256 = template and store.put_blob(template.encode()).sha256
        work = initialise_input(base_model="bare", chat_template_sha256=sha256)
        check_run(models, store, templates, ChatTurns(templates.text), MACHINE, work)

    check(QWEN)
    for broken, reason in [(None, "model bare must have a chat template"), ("x\n{{ y.z }}", "fails in line 2")]:
        with pytest.raises(TemperError, match=reason) as caught:
            check(broken)
        assert caught.value.type == "BadConfig"


DATED = "{%- if day is not defined -%}{%- set day = strftime_now('%d %B %Y') -%}{%- endif -%}Today: {{ day }}." + QWEN


def test_a_run_whose_template_writes_the_date_names_the_day(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """As Llama 3's templates do, unless a variable says the day."""
    store = FileStore(tmp_path / "store")
    models, templates = ModelLibrary(dict, torch.float32, torch.device("cpu")), StoredTemplates(store)
    dated = store.put_blob(DATED.encode()).sha256

    def check(kwargs: dict[str, object] | None) -> None:
        changes = {"base_model": "pocket", "chat_template_sha256": dated, "chat_template_kwargs": kwargs}
        check_run(models, store, templates, ChatTurns(templates.text), MACHINE, initialise_input(**changes))

    check({"strftime_now": "2024-07-26"})
    check({"day": "26 July 2024"})
    for kwargs, words in [
        (None, r"same on every day, .* pocket writes the date; .*--chat-template-kwargs '{\"strftime_now\": \"20"),
        ({"strftime_now": "tomorrow"}, 'must set strftime_now to a day, got "tomorrow"; write it as YYYY-MM-DD'),
    ]:
        with pytest.raises(TemperError, match=words):
            check(kwargs)
    assert check_template.main(["--model=pocket", written(tmp_path, DATED)]) == 0
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
    load_in_4bit: bool, machine: Machine, reason: str, tmp_path: Path
):
    store = FileStore(tmp_path / "store")
    models = ModelLibrary(dict, torch.float32, torch.device("cpu"), load_in_4bit=load_in_4bit)
    templates = StoredTemplates(store)
    work = initialise_input(lora=None, base_model="pocket")
    with pytest.raises(TemperError, match=reason):
        check_run(models, store, templates, ChatTurns(templates.text), machine, work)


def test_a_run_does_not_begin_with_an_optimizer_that_has_nothing_to_pack(tmp_path: Path):
    store = FileStore(tmp_path / "store")
    models = ModelLibrary(dict, torch.float32, torch.device("cpu"))
    templates = StoredTemplates(store)

    def check(lora: LoraConfig | None) -> None:
        work = initialise_input(lora=lora, base_model="pocket", optimizer_kind="adamw_8bit")
        check_run(models, store, templates, ChatTurns(templates.text), MACHINE, work)

    check(None)
    check(LoraConfig(rank=64, alpha=64, target_modules=None))
    with pytest.raises(TemperError, match=r"--optimizer adamw_8bit needs .* the largest of 28 has 384; leave it out"):
        check(LoraConfig(rank=2, alpha=2, target_modules=None))
