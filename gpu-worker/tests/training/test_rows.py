from temper_gpu.training.groups import Attempt, Call
from temper_gpu.training.rows import attempt_rows, build_rows


def call(prompt: list[int], sampled: list[int]) -> Call:
    return Call(prompt, sampled, [-0.5 - token / 100 for token in sampled], 1.0, None)


def trained(rows: list) -> list[list[int]]:
    return [[row.token_ids[t] for t in row.positions] for row in rows]


def test_a_call_that_extends_the_conversation_extends_its_row():
    [row] = attempt_rows([call([1, 2], [3, 4]), call([1, 2, 3, 4, 9, 8], [5])], 1.0)
    assert row.token_ids == [1, 2, 3, 4, 9, 8, 5]
    assert row.positions == [2, 3, 6]
    assert row.logprobs == [-0.53, -0.54, -0.55]


def test_a_prompt_that_rewrites_history_forks_a_row_and_trains_each_token_once():
    rows = attempt_rows([call([1, 2], [3, 4]), call([1, 2, 4, 9], [5]), call([1, 2, 4, 9, 5, 7], [6])], 1.0)
    assert [row.token_ids for row in rows] == [[1, 2, 3, 4], [1, 2, 4, 9, 5, 7, 6]]
    assert trained(rows) == [[3, 4], [5, 6]]


def test_a_second_answer_to_the_same_prompt_is_a_row_whose_context_is_not_trained_again():
    rows = attempt_rows([call([1], [2]), call([1, 2, 3], [4]), call([1, 2, 3], [5])], 1.0)
    assert [row.token_ids for row in rows] == [[1, 2, 3, 4], [1, 2, 3, 5]]
    assert trained(rows) == [[2, 4], [5]]


def test_the_longest_row_that_fits_is_extended():
    rows = attempt_rows([call([1], [2]), call([1], [2, 3]), call([1, 2, 3, 4], [5])], 1.0)
    assert [row.token_ids for row in rows] == [[1, 2], [1, 2, 3, 4, 5]]


def test_forks_are_counted_per_attempt_and_failed_attempts_left_out():
    forked = Attempt(1.0, False, [call([1], [2]), call([9], [3])])
    plain = Attempt(0.0, False, [call([1], [2])])
    rows = build_rows([forked, Attempt(None, False, forked.calls), plain], [0.5, None, -0.5], "mask")
    assert [(row.token_ids, row.advantage) for row in rows.rows] == [([1, 2], 0.5), ([9, 3], 0.5), ([1, 2], -0.5)]
    assert (rows.num_forks, rows.num_trained_tokens) == (1, 3)


def test_truncated_attempts_are_trained_only_where_asked():
    cut = Attempt(1.0, True, [call([1], [2])])
    assert build_rows([cut], [1.0], "mask").rows == []
    assert len(build_rows([cut], [1.0], "keep").rows) == len(build_rows([cut], [1.0], "penalise").rows) == 1


def test_a_call_that_sampled_nothing_makes_no_row():
    assert attempt_rows([call([1], [])], 1.0) == []
