"""What a request samples depends on (adapter, prompt, parameters, seed) alone: bit for bit, whoever is beside it."""

import random
from dataclasses import replace

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from temper_gpu.engine.embedded import sizes
from temper_gpu.engine.embedded.activations import WholeVectors
from temper_gpu.engine.embedded.attention import Layer, attend, causal_mask
from temper_gpu.engine.embedded.engine import EmbeddedEngine
from temper_gpu.engine.embedded.vectors import padded_size
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


@pytest.fixture(scope="module", autouse=True)
def threads_of_large_models():
    """With which the small ones of these tests compute as well."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sizes, "ONE_THREAD_PARAMETERS", 0)
        yield


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


def test_the_default_type_that_another_thread_sets_while_it_loads_changes_no_answer(engine: EmbeddedEngine, alone):
    torch.set_default_dtype(torch.bfloat16)
    try:
        assert ask_together(engine, REQUESTS[:16]) == alone[:16]
    finally:
        torch.set_default_dtype(torch.float32)


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


def test_groups_that_share_long_prompts_answer_as_each_alone(engine: EmbeddedEngine):
    """Whole chunks are attended together, of whichever number of requests; answers go on into chunks of their own."""
    first, second = (request(seed, 300, 1).prompt_token_ids for seed in (1, 2))
    prompts = [first, first[:256], (*first[:270], *second[:30]), (*first, *second[:150]), second[:230]]
    sharing = [
        replace(request(seed, 1, 50 if seed % 5 > 2 else 1 + seed % 4), prompt_token_ids=prompts[seed % 5])
        for seed in range(20)
    ]
    alone = [ask(engine, asked) for asked in sharing]
    for chosen in (range(20), range(19, -1, -1), (0, 5, 10), (3, 8, 0, 1, 2)):
        assert ask_together(engine, [sharing[index] for index in chosen]) == [alone[index] for index in chosen]


def test_requests_that_arrive_while_others_decode(engine: EmbeddedEngine, alone):
    first = [engine.submit(None, asked, 300) for asked in REQUESTS[:10]]
    first[0].result(300)
    second = ask_together(engine, REQUESTS[10:20])
    assert [future.result(300) for future in first] + second == alone[:20]


def test_another_engine_of_another_shape_answers_the_same(base, engine: EmbeddedEngine, alone):
    other = open_engine(base, max_slots=16, max_pass_tokens=128, num_threads=engine.settings.num_threads)
    assert ask_together(other, REQUESTS) == alone
    other.close()


def test_a_small_model_is_computed_by_one_thread_and_its_caller_keeps_its_own(base, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sizes, "ONE_THREAD_PARAMETERS", base.num_parameters + 1)
    before = torch.get_num_threads()
    engine = open_engine(base, num_threads=before + 1)
    assert (engine.health().details["threads"], torch.get_num_threads()) == (1, before)
    engine.close()


def test_policies_side_by_side_answer_as_each_alone(base):
    engine = open_engine(base)
    adapters = [tiny_adapter(base, seed) for seed in (1, 2)]
    tasks = [(adapters[seed % 2], REQUESTS[seed]) for seed in range(24)]
    alone = [engine.submit(held(adapter), asked, 300).result(300) for adapter, asked in tasks]
    futures = [engine.submit(held(adapter), asked, 300) for adapter, asked in tasks]
    plain = [engine.submit(None, asked, 300) for _, asked in tasks]
    assert [future.result(300) for future in futures] == alone
    assert [future.result(300) for future in plain] != alone
    engine.close()


@pytest.mark.parametrize(("group", "head_size"), [(1, 16), (2, 16), (2, 48)])
def test_attention_in_bfloat16_gives_a_row_the_same_bits_in_any_company(group: int, head_size: int):
    """oneDNN multiplies no few small matrices: whether it did depended on how many there were."""
    rows, key_heads = 16, 2
    layer = Layer(0, head_size**-0.5, None, None, None)
    for seed in range(12):
        generator = torch.Generator().manual_seed(seed)
        for num_keys in (32, 64, 128, 192):
            shapes = (rows, 1, key_heads * group), (rows, key_heads, num_keys), (rows, key_heads, num_keys)
            q, k, v = (torch.randn(*shape, head_size, generator=generator).bfloat16() for shape in shapes)
            mask = causal_mask(torch.full((rows, 1), num_keys - 1), 0, num_keys)
            expected = attend(q * 2, k, v, mask, layer)
            for few in (1, 2, 3, 4, 8, 15):
                answered = attend(q[:few] * 2, k[:few], v[:few], mask[:few], layer)
                assert all(torch.equal(some, every[:few]) for some, every in zip(answered, expected, strict=True))


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
