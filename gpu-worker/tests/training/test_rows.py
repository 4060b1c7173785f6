from temper_gpu.training.groups import Attempt, Call, Group
from temper_gpu.training.metrics import batch_metrics
from temper_gpu.training.rows import attempt_rows, build_rows


def call(prompt: list[int], sampled: list[int], turn: int = 0, messages: str = "") -> Call:
    """`messages`: one letter for each."""
    logprobs = [-0.5 - token / 100 for token in sampled]
    return Call(prompt, sampled, logprobs, 1.0, None, turn, messages=list(messages))


def trained(rows: list) -> list[list[int]]:
    return [[row.token_ids[t] for t in row.positions] for row in rows]


def test_a_call_that_extends_the_conversation_extends_its_row():
    [row] = attempt_rows([call([1, 2], [3, 4]), call([1, 2, 3, 4, 9, 8], [5])], [1.0])
    assert row.token_ids == [1, 2, 3, 4, 9, 8, 5]
    assert row.positions == [2, 3, 6]
    assert row.logprobs == [-0.53, -0.54, -0.55]


def test_a_prompt_that_rewrites_history_forks_a_row_and_trains_each_token_once():
    rows = attempt_rows([call([1, 2], [3, 4]), call([1, 2, 4, 9], [5]), call([1, 2, 4, 9, 5, 7], [6])], [1.0])
    assert [row.token_ids for row in rows] == [[1, 2, 3, 4], [1, 2, 4, 9, 5, 7, 6]]
    assert trained(rows) == [[3, 4], [5, 6]]


def test_a_second_answer_to_the_same_prompt_is_a_row_whose_context_is_not_trained_again():
    rows = attempt_rows([call([1], [2]), call([1, 2, 3], [4]), call([1, 2, 3], [5])], [1.0])
    assert [row.token_ids for row in rows] == [[1, 2, 3, 4], [1, 2, 3, 5]]
    assert trained(rows) == [[2, 4], [5]]


def test_the_longest_row_that_fits_is_extended():
    rows = attempt_rows([call([1], [2]), call([1], [2, 3]), call([1, 2, 3, 4], [5])], [1.0])
    assert [row.token_ids for row in rows] == [[1, 2], [1, 2, 3, 4, 5]]


def test_forks_are_counted_per_attempt_and_failed_attempts_left_out():
    forked = Attempt(1.0, False, [call([1], [2]), call([9], [3])])
    plain = Attempt(0.0, False, [call([1], [2])])
    rows = build_rows([forked, Attempt(None, False, forked.calls), plain], [[0.5], None, [-0.5]], "mask")
    assert [(row.token_ids, row.advantages) for row in rows.rows] == [
        ([1, 2], [0.5]),
        ([9, 3], [0.5]),
        ([1, 2], [-0.5]),
    ]
    assert (rows.num_forks, rows.num_trained_tokens) == (1, 3)


def test_truncated_attempts_are_trained_only_where_asked():
    cut = Attempt(1.0, True, [call([1], [2])])
    assert build_rows([cut], [[1.0]], "mask").rows == []
    assert len(build_rows([cut], [[1.0]], "keep").rows) == len(build_rows([cut], [[1.0]], "penalise").rows) == 1


def test_a_call_that_sampled_nothing_makes_no_row():
    assert attempt_rows([call([1], [])], [1.0]) == []


def test_every_token_of_a_turn_has_the_advantage_of_its_turn_in_whichever_row_it_stands():
    calls = [call([1, 2], [3, 4], 0), call([1, 2, 3, 4, 9], [5], 1), call([8], [6, 7], 2)]
    rows = attempt_rows(calls, [0.5, -0.25, 2.0])
    assert [row.advantages for row in rows] == [[0.5, 0.5, -0.25], [2.0, 2.0]]


def test_a_history_of_its_own_is_told_from_a_rewritten_one():
    main = [call([1, 2], [3], messages="su"), call([1, 2, 3, 9], [4], messages="suat")]
    rewritten = call([1, 2, 9, 9, 9], [5], messages="suatat")
    sub_agent = [call([7, 7, 7, 7, 7, 7], [6], messages="SU"), call([7, 7, 7, 7, 7, 7, 6, 8], [2], messages="SUAT")]
    compacted = call([1, 5, 5, 5, 5, 5, 5, 5, 5], [3], messages="sz")
    rows = attempt_rows([*main, rewritten, *sub_agent, compacted], [1.0])
    assert [row.begins for row in rows] == ["attempt", "fork", "history", "history"]
    assert trained(rows) == [[3, 4], [5], [6, 2], [3]]


def test_histories_share_the_advantage_of_their_attempt_and_train_each_token_once_and_are_counted():
    sub_agents = Attempt(1.0, False, [call([1], [2, 3], messages="u"), call([9], [4], messages="U")])
    asked_twice = Attempt(0.0, False, [call([1], [2], messages="u"), call([1], [5], messages="u")])
    attempts = [sub_agents, asked_twice]
    rows = build_rows(attempts, [[0.5], [-0.5]], "mask")
    assert [row.advantages for row in rows.rows] == [[0.5, 0.5], [0.5], [-0.5], [-0.5]]
    metrics = batch_metrics([Group(0, attempts)], [[0.5], [-0.5]], rows, "mask")
    names = ("rows", "forks", "histories", "sampledTokens", "trainedTokens")
    assert [metrics[name] for name in names] == [4, 1, 1, 5, 5]


def test_what_few_agents_have_is_no_metric_of_the_others():
    plain = Attempt(1.0, False, [call([1], [2], messages="u"), call([1], [3], messages="u")])
    metrics = batch_metrics([Group(0, [plain])], [[0.5]], build_rows([plain], [[0.5]], "mask"), "mask")
    assert metrics["forks"] == 1
    assert not {"histories", "rewardedTurns"} & metrics.keys()
