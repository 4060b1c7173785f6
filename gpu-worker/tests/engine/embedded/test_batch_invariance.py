"""What a request samples depends on (adapter, prompt, parameters, seed) alone: bit for bit, whoever is beside it."""

import os
import random
import subprocess
import sys
from contextlib import suppress

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import temper_gpu.engine.embedded.engine as engine_module
import temper_gpu.engine.embedded.forward as forward
import temper_gpu.engine.embedded.scheduler as scheduler
from temper_gpu.engine.embedded.activations import WholeVectors, padded_size
from temper_gpu.engine.embedded.engine import EmbeddedEngine
from temper_gpu.engine.embedded.host import EngineHost
from temper_gpu.engine.embedded.proof import Unproven, prove_sizes
from temper_gpu.engine.embedded.settings import EngineSettings
from temper_gpu.engine.embedded.sizes import Sizes
from temper_gpu.failures import TemperError
from temper_gpu.model.instructions import LIMITS
from temper_gpu.model.models import BaseModel, ModelLibrary
from tests.engine.embedded.tiny import ask, ask_together, held, open_engine, request, tiny_adapter, tiny_base

pytestmark = pytest.mark.numerics

rng = random.Random(0)
REQUESTS = [
    request(
        seed,
        rng.choice([1, 5, 12, 12, 12, 16, 17, 40, 65, 130]),
        rng.choice([1, 2, 2, 12, 30]),
        rng.choice([0, 1, 1, 0.7]),
    )
    for seed in range(64)
]


@pytest.fixture(scope="module", params=[1, 2], ids=["1 thread", "2 threads"])
def engine(request, base):
    engine = open_engine(base, num_threads=request.param, max_pass_tokens=512)
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def alone(engine: EmbeddedEngine):
    return [ask(engine, asked) for asked in REQUESTS]


def test_a_batch_of_64_answers_as_each_alone(engine: EmbeddedEngine, alone):
    assert ask_together(engine, REQUESTS) == alone


def test_any_order_answers_the_same(engine: EmbeddedEngine, alone):
    for seed in range(3):
        order = random.Random(seed).sample(range(64), 64)
        assert ask_together(engine, [REQUESTS[index] for index in order]) == [alone[index] for index in order]


def test_a_long_neighbour_changes_nothing(engine: EmbeddedEngine, alone):
    """It makes the slot table grow while others decode, and everybody read more key blocks."""
    neighbours = [request(1000 + length, length, 40) for length in (450, 300, 1)]
    answers = ask_together(engine, [*REQUESTS[:20], *neighbours, *REQUESTS[20:40]])
    assert answers[:20] + answers[23:] == alone[:40]


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_neighbours_in_any_number(engine: EmbeddedEngine, alone, data: st.DataObject):
    chosen = data.draw(st.lists(st.integers(0, 63), min_size=1, max_size=40))
    assert ask_together(engine, [REQUESTS[index] for index in chosen]) == [alone[index] for index in chosen]


@pytest.mark.parametrize("num_threads", [1, 2])
def test_widths_that_no_processor_likes(num_threads: int):
    """A head size of 30: unaligned rows, of which a library adds the first few apart."""
    engine = open_engine(tiny_base("odd"), num_threads=num_threads, max_pass_tokens=256)
    requests = REQUESTS[:24]
    assert ask_together(engine, requests[::-1])[::-1] == [ask(engine, asked) for asked in requests]
    assert engine.sizes.allowed[:6] == (16, 32, 48, 64, 96, 128)
    engine.close()


def test_requests_that_arrive_while_others_decode(engine: EmbeddedEngine, alone):
    first = [engine.submit(None, asked, 60) for asked in REQUESTS[:10]]
    first[0].result(60)
    second = ask_together(engine, REQUESTS[10:20])
    assert [future.result(60) for future in first] + second == alone[:20]


def test_another_engine_of_another_shape_answers_the_same(base, engine: EmbeddedEngine, alone):
    other = open_engine(base, max_slots=16, max_pass_tokens=128, num_threads=engine.settings.num_threads)
    assert ask_together(other, REQUESTS) == alone
    other.close()


def test_policies_side_by_side_answer_as_each_alone(base):
    engine = open_engine(base)
    adapters = [tiny_adapter(base, seed) for seed in (1, 2)]
    tasks = [(adapters[seed % 2], REQUESTS[seed]) for seed in range(24)]
    alone = [engine.submit(held(adapter), asked, 60).result(60) for adapter, asked in tasks]
    futures = [engine.submit(held(adapter), asked, 60) for adapter, asked in tasks]
    plain = [engine.submit(None, asked, 60) for _, asked in tasks]
    assert [future.result(60) for future in futures] == alone
    assert [future.result(60) for future in plain] != alone
    engine.close()


# ---- and the tests above can fail


def test_an_attention_that_adds_over_all_keys_at_once_is_noticed(base, monkeypatch: pytest.MonkeyPatch):
    """The usual softmax over however many keys the longest neighbour has, the order of addition made visible."""

    def careless(query, key, value, mask, scaling):
        groups = query.shape[1] // key.shape[1]
        scores = query @ key.repeat_interleave(groups, 1).transpose(2, 3) * scaling + mask[:, :, 0]
        noise = 1 + 1e-7 * key.shape[2]
        return scores.softmax(-1) @ value.repeat_interleave(groups, 1) * noise

    monkeypatch.setattr(forward, "attend", careless)
    sizes = Sizes((16, 48, 128, 256, 512), 0)
    with suppress(TemperError):
        assert len(prove_sizes(base, sizes, 128).allowed) < len(sizes.allowed)
    monkeypatch.setattr(engine_module, "prove_sizes", lambda base, sizes, max_slots: sizes)
    engine = open_engine(base)
    requests = [request(seed, 12, 4) for seed in range(8)]
    alone = [ask(engine, asked) for asked in requests]
    assert ask_together(engine, [*requests, request(9, 100, 8)])[:8] != alone
    engine.close()


@pytest.mark.parametrize("size", [48, 128, 256])
@pytest.mark.parametrize("mutant", ["first layer", "last layer", "far positions", "decode"])
def test_a_mutant_that_breaks_invariance_for_one_size_is_found_by_the_proof(
    base, monkeypatch: pytest.MonkeyPatch, size: int, mutant: str
):
    """One bit of a token (of every other one in the last layer, where only sampled tokens count)."""
    true_attend = forward.ForwardPass.attend

    def attend(self, layer, query_1HMD, scaling):
        output = true_attend(self, layer, query_1HMD, scaling)
        tile = self.tiles[-1]
        is_far = tile.num_keys > 144
        is_decode = tile.queries_RC is None
        is_hit = {
            "first layer": layer == 0 and not is_decode,
            "last layer": layer == 1 and not is_decode,
            "far positions": layer == 0 and is_far,
            "decode": layer == 0 and is_decode,
        }[mutant]
        if is_hit and query_1HMD.shape[2] == size:
            output = output.clone()
            hit = slice(None, None, 2) if mutant == "last layer" else size // 2
            output[0, hit] = torch.nextafter(output[0, hit], torch.tensor(torch.inf))
        return output

    monkeypatch.setattr(forward.ForwardPass, "attend", attend)
    sizes = Sizes((16, 48, 128, 256, 512), 0)
    assert prove_sizes(base, sizes, 256).allowed == tuple(each for each in sizes.allowed if each != size)


@pytest.mark.parametrize("num_threads", [1, 2, 3, 4, 5, 16])
@pytest.mark.parametrize("width", [16, 77, 96, 100, 112, 271])
def test_an_activation_gives_an_element_the_same_bits_wherever_it_stands(width: int, num_threads: int):
    """`silu` of torch does not: what is left of a thread's share after its whole vectors has other last bits."""
    before = torch.get_num_threads()
    torch.set_num_threads(num_threads)
    rows = torch.randn(24, width, generator=torch.Generator().manual_seed(0)) * 3
    for activation in (torch.nn.SiLU(), torch.nn.GELU(approximate="tanh")):
        safe = WholeVectors(activation)
        expected = safe(rows[torch.arange(16) % 16])
        for size in (16, 48, 64, 256, 1024):
            places = torch.arange(size).roll(size // 3) % 16
            assert torch.equal(safe(rows[places]), expected[places])
    torch.set_num_threads(before)


def test_an_activation_of_whole_vectors_is_not_copied():
    assert [padded_size(num_elements, 2) for num_elements in (16 * 64, 48 * 96, 1024 * 128)] == [1024, 4608, 131072]


def test_chance_that_depends_on_the_row_is_noticed(base, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(
        scheduler, "uniforms", lambda seeds, indices: torch.linspace(0, 0.99, len(seeds), dtype=torch.float64)
    )
    engine = open_engine(base)
    assert ask_together(engine, REQUESTS[:16]) != [ask(engine, asked) for asked in REQUESTS[:16]]
    engine.close()


def test_a_size_whose_numbers_differ_is_not_used(base, monkeypatch: pytest.MonkeyPatch):
    true_attend = forward.attend

    def attend(query, key, value, mask, scaling):
        output = true_attend(query, key, value, mask, scaling)
        return output * (1 + 1e-6) if query.shape[0] == 32 and query.shape[2] == 1 else output  # decode of 32 slots

    monkeypatch.setattr(forward, "attend", attend)
    assert prove_sizes(base, Sizes((16, 32, 64, 128), 0), 128).allowed == (16, 64, 128)


def test_where_places_matter_in_every_size_the_engine_does_not_start(base, monkeypatch: pytest.MonkeyPatch):
    true_attend = forward.attend

    def attend(query, key, value, mask, scaling):
        rows = torch.arange(query.shape[0], dtype=query.dtype)[:, None, None, None]
        return true_attend(query, key, value, mask, scaling) * (1 + 1e-5 * rows)

    monkeypatch.setattr(forward, "attend", attend)
    with pytest.raises(TemperError, match="token's position") as caught:
        open_engine(base)
    assert caught.value.type == "BadConfig"


# ---- and where the proof leaves too little, the process is limited to narrower instructions


class Library(ModelLibrary):
    def __init__(self, base: BaseModel) -> None:
        super().__init__(dict, base.dtype, base.device)
        self._models[base.name] = base


@pytest.mark.parametrize(("num_sizes", "is_doubted"), [(0, True), (3, True), (4, False)])
def test_a_model_of_which_few_sizes_are_proven_is_doubted(
    base, monkeypatch: pytest.MonkeyPatch, num_sizes: int, is_doubted: bool
):
    def prove(base: BaseModel, sizes: Sizes, max_slots: int) -> Sizes:
        if not num_sizes:
            raise Unproven("every size depends on places")
        return Sizes(sizes.allowed[-num_sizes:], 0)

    monkeypatch.setattr(engine_module, "prove_sizes", prove)
    doubts: list[str] = []
    settings = EngineSettings(num_threads=1, max_pass_tokens=256)
    host = EngineHost(Library(base), settings, on_doubt=doubts.append)
    with suppress(Unproven):
        host.engine(base.name)
    assert bool(doubts) == is_doubted
    host.close()


START_NARROWER = """
import os, sys
from temper_gpu.model.instructions import limits, start_narrower
print(os.getpid(), limits(), flush=True)
if not limits():
    assert os.read(0, 1) == b"1"
start_narrower("no size is proven")
print("ready", os.read(0, 1), *sys.argv[1:], flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="a process keeps its id across a new start on POSIX only")
def test_a_process_starts_narrower_once_with_its_id_and_its_stdin():
    env = {name: value for name, value in os.environ.items() if name not in LIMITS}
    command = [sys.executable, "-c", START_NARROWER, "--leash", "--standby"]
    process = subprocess.run(command, input=b"12", capture_output=True, env=env, check=True)
    first, second, ready = process.stdout.decode().splitlines()
    narrow = "ATEN_CPU_CAPABILITY=avx2 MKL_CBWR=AUTO,STRICT ONEDNN_MAX_CPU_ISA=AVX2"
    assert (second, ready) == (f"{first.strip()} {narrow}", "ready b'2' --leash")
    assert b"no size is proven. The worker starts again with narrower instructions" in process.stderr
