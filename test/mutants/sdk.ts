/** Broken lines of what users import. */
import type { Mutant } from './mutant.ts';

const GATHER_TEST = 'test/sdk/loop/gather.test.ts';
const TOOL_LOOP_TEST = 'test/sdk/tool-loop.test.ts';
const TRAIN_TEST = 'test/sdk/loop/train.test.ts';

export const SDK: readonly Mutant[] = [
  {
    name: 'a tool that must run once runs again in an attempt that is played again',
    file: 'sdk/tools/run-call.ts',
    find: 'return tool.once && once !== null ? ',
    replace: 'return tool.once && once === undefined ? ',
    test: TOOL_LOOP_TEST,
  },
  {
    name: 'a tool that fails ends the attempt',
    file: 'sdk/tools/run-call.ts',
    find: 'return failure(error instanceof Error ? error.message : String(error));',
    replace: 'throw error;',
    test: TOOL_LOOP_TEST,
  },
  {
    name: 'the tokens of a loop are not bounded',
    file: 'sdk/tools/tool-loop.ts',
    find: 'Math.min(maxTokens - this.#tokens, maxTokensPerTurn)',
    replace: 'Math.min(maxTokens, maxTokensPerTurn)',
    test: TOOL_LOOP_TEST,
  },
  {
    name: 'tools act behind the back of an attempt that one of them has ended',
    file: 'sdk/tools/tool-loop.ts',
    find: '    await Promise.allSettled(running);\n',
    replace: '',
    test: TOOL_LOOP_TEST,
  },
  {
    name: 'a call that fails hands the work in',
    file: 'sdk/tools/tool-loop.ts',
    find: '!failed && this.#tools',
    replace: 'this.#tools',
    test: TOOL_LOOP_TEST,
  },
  {
    name: 'all attempts may fail',
    file: 'sdk/loop/gather.ts',
    find: 'this.#exceptions <= this.#allowed',
    replace: 'this.#exceptions <= this.#total',
    test: GATHER_TEST,
  },
  {
    name: 'the failures of a found group are not counted',
    file: 'sdk/loop/gather.ts',
    find: 'for (const { type, message } of group?.exceptions ?? [])',
    replace: 'for (const { type, message } of group?.exceptions.slice(1) ?? [])',
    test: GATHER_TEST,
  },
  {
    name: 'groups after a failed gathering get numbers of their own',
    file: 'sdk/loop/gather.ts',
    find: 'run.gathered[split] = first;',
    replace: 'run.gathered[split] += 0;',
    test: GATHER_TEST,
  },
  {
    name: 'a group is trained twice in a step',
    file: 'sdk/loop/train-groups.ts',
    find: 'group)).size < given.length) throw groupTwice();',
    replace: 'group)).size > given.length) throw groupTwice();',
    test: TRAIN_TEST,
  },
  {
    name: 'a reward that is no number is trained',
    file: 'sdk/loop/train-groups.ts',
    find: 'if (Number.isFinite(reward)) return;',
    replace: 'if (reward !== undefined) return;',
    test: TRAIN_TEST,
  },
  {
    name: 'a step that is trained again is trained from what came after it',
    file: 'sdk/loop/train-groups.ts',
    find: 'if (step > run.step) return run.checkpoint;',
    replace: 'if (step > 0) return run.checkpoint;',
    test: TRAIN_TEST,
  },
  {
    name: 'what is tried again is tried once more than asked for',
    file: 'sdk/loop/retry.ts',
    find: 'attempt >= maxAttempts',
    replace: 'attempt > maxAttempts',
    test: GATHER_TEST,
  },
  {
    name: 'a call of an attempt that has ended is tried again',
    file: 'sdk/loop/retry.ts',
    find: 'if (isOver || ',
    replace: 'if (',
    test: GATHER_TEST,
  },
  {
    name: 'a script that goes on gets other batches',
    file: 'sdk/loop/iterate-dataset.ts',
    find: "deriveSeed([seed, 'dataset', epoch])",
    replace: "deriveSeed([seed, 'dataset', initialStep])",
    test: 'test/sdk/loop/iterate-dataset.test.ts',
  },
  {
    name: 'a call of a tool server that may not be made twice is made again after a kill',
    file: 'sdk/mcp/attempt-calls.ts',
    find: 'if (isReadOnly || isIdempotent || this.#settings.replay) return true;',
    replace: 'if (key !== "") return true;',
    test: 'test/mcp/interrupted.test.ts',
  },
  {
    name: 'a secret of a tool server reaches the model',
    file: 'sdk/mcp/attempt-calls.ts',
    find: 'bound(connection.redact(text), maxResultBytes)',
    replace: 'bound(text, maxResultBytes)',
    test: 'test/mcp/http.test.ts',
  },
  {
    name: "the judge's score is added to a reward that it replaces",
    file: 'sdk/ruler/score.ts',
    find: 'judged.weights.agent * reward;',
    replace: 'reward;',
    test: 'test/sdk/ruler/score.test.ts',
  },
  {
    name: 'the run waits for a reward that has no weight',
    file: 'sdk/agent/check-agent.ts',
    find: '[name] === 0',
    replace: '[name] === -1',
    test: 'test/sdk/define-agent.test.ts',
  },
];
