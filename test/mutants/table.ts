import { ACTIVITIES } from './activities.ts';
import { ADAPTERS } from './adapters.ts';
import { BROWSER } from './browser.ts';
import { CLI } from './cli.ts';
import { CUDA } from './cuda.ts';
import { DURABLE } from './durable.ts';
import { LOSSES } from './losses.ts';
import type { Mutant } from './mutant.ts';
import { OUTBOUND } from './outbound.ts';
import { PLANS } from './plans.ts';
import { RANKS } from './ranks.ts';
import { SDK } from './sdk.ts';
import { SUPERVISED } from './supervised.ts';
import { WORKERS } from './workers.ts';
import { WORKFLOWS } from './workflows.ts';
import { VIEWS } from './views.ts';

const TRAINING = 'gpu-worker/temper_gpu/training';
const TRAINING_TESTS = 'gpu-worker/tests/training';
const SAMPLING = 'gpu-worker/temper_gpu/engine/embedded/sampling.py';
const SAMPLING_TEST = 'gpu-worker/tests/engine/embedded/test_sampling.py';

const ADVANTAGES: readonly Mutant[] = [
  {
    name: 'leave-one-out is ignored',
    file: `${TRAINING}/advantages.py`,
    find: '(reward - mean) * factor / divisor',
    replace: '(reward - mean) / divisor',
    test: `${TRAINING_TESTS}/test_advantages.py`,
  },
  {
    name: 'penalised attempts get the highest return',
    file: `${TRAINING}/advantages.py`,
    find: '[min(at_turn) if attempt.truncated',
    replace: '[max(at_turn) if attempt.truncated',
    test: `${TRAINING_TESTS}/test_advantages.py`,
  },
  {
    name: 'the divisor lacks its epsilon',
    file: `${TRAINING}/advantages.py`,
    find: ' else batch_std) + STD_EPSILON',
    replace: ' else batch_std)',
    test: `${TRAINING_TESTS}/test_advantages.py`,
  },
  {
    name: 'equal returns at a turn leave a rounding as their advantage',
    file: `${TRAINING}/advantages.py`,
    find: 'if len(set(group)) < 2:',
    replace: 'if len(set(group)) < 1:',
    test: `${TRAINING_TESTS}/test_advantages.py`,
  },
];

const OVERLONG: readonly Mutant[] = [
  {
    name: 'the trainer takes rewards as they were given',
    file: `${TRAINING}/advantages.py`,
    find: 'attempt.reward - attempt.overlong_cost',
    replace: 'attempt.reward',
    test: `${TRAINING_TESTS}/test_overlong.py`,
  },
  {
    name: 'what an answer costs is not read from its verdict',
    file: `${TRAINING}/groups.py`,
    find: 'verdict.get("overlongCosts")',
    replace: 'None',
    test: `${TRAINING_TESTS}/test_overlong.py`,
  },
  {
    name: "a verdict does not record what an answer's length costs",
    file: 'store/records/group-result.ts',
    find: '...overlongCosts(rules, attempts),',
    replace: '',
    test: 'test/store/records/group-result.test.ts',
  },
  {
    name: 'the verdict takes rewards as they were given',
    file: 'core/shaped-rewards.ts',
    find: 'reward - (costs?.[index] ?? 0)',
    replace: 'reward',
    test: 'test/store/records/group-result.test.ts',
  },
  {
    name: 'a plan does not tell its verdict what long answers cost',
    file: 'core/plan-step.ts',
    find: 'return { truncated, overlongBuffer, overlongPenalty, ',
    replace: 'return { truncated, overlongBuffer: null, overlongPenalty, ',
    test: 'test/core/plan-step.test.ts',
  },
];

const PACKING: readonly Mutant[] = [
  {
    name: 'the loss is a sum, not a mean over tokens',
    file: `${TRAINING}/tokens.py`,
    find: 'weighted_F = tokens.advantages_F * weights_F * tokens.factors_F',
    replace: 'weighted_F = tokens.advantages_F * tokens.factors_F',
    test: `${TRAINING_TESTS}/test_step_by_hand.py`,
  },
  {
    name: 'tokens get the weights of others',
    file: `${TRAINING}/tokens.py`,
    find: 'weighted_advantages_N=weighted_F[places_N]',
    replace: 'weighted_advantages_N=weighted_F[: len(places_N)]',
    test: `${TRAINING_TESTS}/test_step_by_hand.py`,
  },
  {
    name: 'tokens are predicted from their own position',
    file: `${TRAINING}/packing/chains.py`,
    find: '[b * width + t - 1 for b',
    replace: '[b * width + t for b',
    test: `${TRAINING_TESTS}/test_against_plain_torch.py`,
  },
  {
    name: 'temperature is left out of the scores',
    file: `${TRAINING}/packing/micro_batch.py`,
    find: '(value for row in rows for value in row.temperatures)',
    replace: '(1.0 for row in rows for _ in row.temperatures)',
    test: `${TRAINING_TESTS}/test_against_plain_torch.py`,
  },
];

const SEGMENTS: readonly Mutant[] = [
  {
    name: 'a branch is attended to after it has ended',
    file: `${TRAINING}/packing/segments.py`,
    find: 'mask_QK &= queries_Q[:, None] < self.ends_T[keys_K]',
    replace: 'pass',
    test: `${TRAINING_TESTS}/test_trees.py`,
  },
  {
    name: 'positions are those of the row, not of the sequence',
    file: `${TRAINING}/packing/segments.py`,
    find: 'first = 0 if parent is None else depths[parent]',
    replace: 'first = start',
    test: `${TRAINING_TESTS}/test_trees.py`,
  },
];

const ROWS: readonly Mutant[] = [
  {
    name: 'a call that sampled nothing makes a row',
    file: `${TRAINING}/rows.py`,
    find: 'if not call.token_ids:',
    replace: 'if not call.prompt_token_ids:',
    test: `${TRAINING_TESTS}/test_rows.py`,
  },
  {
    name: 'a rewritten history goes on in the old row',
    file: `${TRAINING}/rows.py`,
    find: 'prompt[: len(row.token_ids)] == row.token_ids',
    replace: 'prompt[:1] == row.token_ids[:1]',
    test: `${TRAINING_TESTS}/test_rows.py`,
  },
  {
    name: 'all turns have the advantage of the first',
    file: `${TRAINING}/rows.py`,
    find: 'advantages[0 if len(advantages) == 1 else call.turn]',
    replace: 'advantages[0]',
    test: `${TRAINING_TESTS}/test_rows.py`,
  },
];

const SAMPLED: readonly Mutant[] = [
  {
    name: 'temperature is ignored',
    file: SAMPLING,
    find: '[temperature or 1.0 for temperature in temperatures]',
    replace: '[1.0 for temperature in temperatures]',
    test: SAMPLING_TEST,
  },
  {
    name: 'a token of probability zero can be drawn',
    file: SAMPLING,
    find: 'right=True',
    replace: 'right=False',
    test: SAMPLING_TEST,
  },
  {
    name: 'every token of a request draws the same number',
    file: SAMPLING,
    find: '(indices_S + np.uint64(1)) * GOLDEN_GAMMA',
    replace: '(indices_S * np.uint64(0)) * GOLDEN_GAMMA',
    test: SAMPLING_TEST,
  },
];

const JOURNAL: readonly Mutant[] = [
  {
    name: 'the last record for a call wins',
    file: 'play/recorder/journal.ts',
    find: 'if (!this.#answers.has(name)) this.#answers.set(',
    replace: 'this.#answers.set(',
    test: 'test/play/journal.test.ts',
  },
  {
    name: 'checksums are not looked at',
    file: 'store/bytes/journal-records.ts',
    find: ' || crc32(payload) !== bytes.readUInt32LE(start + 4)',
    replace: '',
    test: 'test/play/journal.test.ts',
  },
  {
    name: 'the latest overlap counts, not the earliest',
    file: 'play/recorder/journal.ts',
    find: 'Math.min(payload.t, ',
    replace: 'Math.max(payload.t, ',
    test: 'test/play/journal.test.ts',
  },
  {
    name: 'records are appended behind a torn one',
    file: 'store/bytes/file-journal.ts',
    find: '    if (this.#broken !== null) throw this.#broken;\n',
    replace: '',
    test: 'test/store/bytes/file-store.test.ts',
  },
];

const STORE: readonly Mutant[] = [
  {
    name: 'a blob that was cut is taken for whole',
    file: 'store/bytes/file-store.ts',
    find: 'if (present !== bytes.length ',
    replace: 'if (present === null ',
    test: 'test/store/bytes/file-store.test.ts',
  },
  {
    name: 'a commit is not synchronised with its folder',
    file: 'store/bytes/file-store.ts',
    find: '    await this.#files.syncFolder(dirname(file));\n    return { created: true, bytes };',
    replace: '    return { created: true, bytes };',
    test: 'test/store/bytes/file-store.test.ts',
  },
  {
    name: 'a blob with a flipped bit is left as it is',
    file: 'gpu-worker/temper_gpu/store/file_store.py',
    find: 'if self.read(ref.key) != data or',
    replace: 'if self.read(ref.key) is None or',
    test: 'gpu-worker/tests/store/test_file_store.py',
  },
];

export const MUTANTS: readonly Mutant[] = [
  ...DURABLE,
  ...LOSSES,
  ...RANKS,
  ...SUPERVISED,
  ...ADAPTERS,
  ...CUDA,
  ...ADVANTAGES,
  ...OVERLONG,
  ...PACKING,
  ...SEGMENTS,
  ...ROWS,
  ...SAMPLED,
  ...JOURNAL,
  ...STORE,
  ...PLANS,
  ...WORKFLOWS,
  ...ACTIVITIES,
  ...WORKERS,
  ...CLI,
  ...SDK,
  ...OUTBOUND,
  ...VIEWS,
  ...BROWSER,
];

/** The text with the mutant in it. */
export function mutate(text: string, { name, file, find, replace }: Mutant): string {
  const count = text.split(find).length - 1;
  if (count === 1) return text.replace(find, () => replace);
  throw new Error(
    `the anchor of the mutant "${name}" must occur exactly once in ${file}, it occurs ${count} times: ${JSON.stringify(find)}; mend it in test/mutants/table.ts`,
  );
}
