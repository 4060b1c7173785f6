/** Broken lines of training, sampling, journal and store. */
import { breaking, type Mutant } from './mutant.ts';

export const TRAINING: readonly Mutant[] = [
  ...breaking('gpu-worker/temper_gpu/training/advantages.py', 'gpu-worker/tests/training/test_advantages.py', [
    ['leave-one-out is ignored', '(reward - mean) * factor / divisor', '(reward - mean) / divisor'],
    [
      'penalised attempts get the highest return',
      '[min(at_turn) if attempt.truncated',
      '[max(at_turn) if attempt.truncated',
    ],
    ['the divisor lacks its epsilon', ' else batch_std) + STD_EPSILON', ' else batch_std)'],
    [
      'equal returns at a turn leave a rounding as their advantage',
      'if len(set(group)) < 2:',
      'if len(set(group)) < 1:',
    ],
  ]),
  ...breaking('gpu-worker/temper_gpu/training/advantages.py', 'gpu-worker/tests/training/test_overlong.py', [
    ['the trainer takes rewards as they were given', 'attempt.reward - attempt.overlong_cost', 'attempt.reward'],
  ]),
  ...breaking('gpu-worker/temper_gpu/training/groups.py', 'gpu-worker/tests/training/test_overlong.py', [
    ['what an answer costs is not read from its verdict', 'verdict.get("overlongCosts")', 'None'],
  ]),
  ...breaking('store/records/groups/group-result.ts', 'test/store/records/groups/group-result.test.ts', [
    ["a verdict does not record what an answer's length costs", '...overlongCosts(rules, attempts),', ''],
  ]),
  ...breaking('core/plan/shaped-rewards.ts', 'test/store/records/groups/group-result.test.ts', [
    ['the verdict takes rewards as they were given', 'reward - (costs?.[index] ?? 0)', 'reward'],
  ]),
  ...breaking('core/plan/step.ts', 'test/core/plan/step.test.ts', [
    [
      'a plan does not tell its verdict what long answers cost',
      'return { truncated, overlongBuffer, overlongPenalty, ',
      'return { truncated, overlongBuffer: null, overlongPenalty, ',
    ],
  ]),
  ...breaking('gpu-worker/temper_gpu/training/tokens.py', 'gpu-worker/tests/training/test_step_by_hand.py', [
    [
      'the loss is a sum, not a mean over tokens',
      'weighted_F = tokens.advantages_F * weights_F * tokens.factors_F',
      'weighted_F = tokens.advantages_F * tokens.factors_F',
    ],
    [
      'tokens get the weights of others',
      'weighted_advantages_N=weighted_F[places_N]',
      'weighted_advantages_N=weighted_F[: len(places_N)]',
    ],
  ]),
  ...breaking(
    'gpu-worker/temper_gpu/training/packing/packer.py',
    'gpu-worker/tests/training/test_against_plain_torch.py',
    [['tokens are predicted from their own position', '[b * width + t - 1 for b', '[b * width + t for b']],
  ),
  ...breaking(
    'gpu-worker/temper_gpu/training/packing/micro_batch.py',
    'gpu-worker/tests/training/test_against_plain_torch.py',
    [
      [
        'temperature is left out of the scores',
        '(value for row in rows for value in row.temperatures)',
        '(1.0 for row in rows for _ in row.temperatures)',
      ],
    ],
  ),
  ...breaking('gpu-worker/temper_gpu/training/packing/segments.py', 'gpu-worker/tests/training/test_trees.py', [
    ['a branch is attended to after it has ended', 'mask_QK &= queries_Q[:, None] < self.ends_T[keys_K]', 'pass'],
    [
      'positions are those of the row, not of the sequence',
      'first = 0 if parent is None else depths[parent]',
      'first = start',
    ],
  ]),
  ...breaking('gpu-worker/temper_gpu/training/rows.py', 'gpu-worker/tests/training/test_rows.py', [
    ['a call that sampled nothing makes a row', 'if not call.token_ids:', 'if not call.prompt_token_ids:'],
    [
      'a rewritten history goes on in the old row',
      'prompt[: len(row.token_ids)] == row.token_ids',
      'prompt[:1] == row.token_ids[:1]',
    ],
    [
      'all turns have the advantage of the first',
      'advantages[0 if len(advantages) == 1 else call.turn]',
      'advantages[0]',
    ],
  ]),
  ...breaking(
    'gpu-worker/temper_gpu/engine/embedded/sampling.py',
    'gpu-worker/tests/engine/embedded/test_sampling.py',
    [
      [
        'temperature is ignored',
        '[temperature or 1.0 for temperature in temperatures]',
        '[1.0 for temperature in temperatures]',
      ],
      ['a token of probability zero can be drawn', 'right=True', 'right=False'],
      [
        'every token of a request draws the same number',
        '(indices_S + np.uint64(1)) * GOLDEN_GAMMA',
        '(indices_S * np.uint64(0)) * GOLDEN_GAMMA',
      ],
    ],
  ),
  ...breaking('play/recorder/journal.ts', 'test/play/journal.test.ts', [
    ['the last record for a call wins', 'if (!this.#answers.has(name)) this.#answers.set(', 'this.#answers.set('],
    ['the latest overlap counts, not the earliest', 'Math.min(payload.t, ', 'Math.max(payload.t, '],
  ]),
  ...breaking('store/bytes/journal-records.ts', 'test/play/journal.test.ts', [
    ['checksums are not looked at', ' || crc32(payload) !== bytes.readUInt32LE(start + 4)', ''],
  ]),
  ...breaking('store/bytes/file-journal.ts', 'test/store/bytes/file-store.test.ts', [
    ['records are appended behind a torn one', '    if (this.#broken !== null) throw this.#broken;\n', ''],
  ]),
  ...breaking('store/bytes/file-store.ts', 'test/store/bytes/file-store.test.ts', [
    ['a blob that was cut is taken for whole', 'if (present !== bytes.length ', 'if (present === null '],
    [
      'a commit is not synchronised with its folder',
      '    await this.#files.syncFolder(dirname(file));\n    return { created: true, bytes };',
      '    return { created: true, bytes };',
    ],
  ]),
  ...breaking('gpu-worker/temper_gpu/store/file_store.py', 'gpu-worker/tests/store/test_file_store.py', [
    [
      'a blob with a flipped bit is left as it is',
      'if self.read(ref.key) != data or',
      'if self.read(ref.key) is None or',
    ],
  ]),
];
