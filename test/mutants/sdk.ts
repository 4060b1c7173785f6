/** Broken lines of what users import. */
import { breaking, type Mutant } from './mutant.ts';

export const SDK: readonly Mutant[] = [
  ...breaking('sdk/tools/run-call.ts', 'test/sdk/tool-loop.test.ts', [
    [
      'a tool that must run once runs again in an attempt that is played again',
      'return tool.once && once !== null ? ',
      'return tool.once && once === undefined ? ',
    ],
    [
      'a tool that fails ends the attempt',
      'return failure(error instanceof Error ? error.message : String(error));',
      'throw error;',
    ],
  ]),
  ...breaking('sdk/tools/tool-loop.ts', 'test/sdk/tool-loop.test.ts', [
    [
      'the tokens of a loop are not bounded',
      'Math.min(maxTokens - this.#tokens, maxTokensPerTurn)',
      'Math.min(maxTokens, maxTokensPerTurn)',
    ],
    [
      'tools act behind the back of an attempt that one of them has ended',
      '    await Promise.allSettled(running);\n',
      '',
    ],
    ['a call that fails hands the work in', '!failed && this.#tools', 'this.#tools'],
  ]),
  ...breaking('sdk/loop/gather.ts', 'test/sdk/loop/gather.test.ts', [
    ['all attempts may fail', 'this.#exceptions <= this.#allowed', 'this.#exceptions <= this.#total'],
    [
      'the failures of a found group are not counted',
      'for (const { type, message } of group?.exceptions ?? [])',
      'for (const { type, message } of group?.exceptions.slice(1) ?? [])',
    ],
    [
      'groups after a failed gathering get numbers of their own',
      'run.gathered[split] = first;',
      'run.gathered[split] += 0;',
    ],
  ]),
  ...breaking('sdk/loop/train-groups.ts', 'test/sdk/loop/train.test.ts', [
    [
      'a group is trained twice in a step',
      'group)).size < given.length) throw groupTwice();',
      'group)).size > given.length) throw groupTwice();',
    ],
    ['a reward that is no number is trained', 'if (isReward(reward)) return;', 'if (reward !== undefined) return;'],
    [
      'a step that is trained again is trained from what came after it',
      'if (step > run.step) return run.checkpoint;',
      'if (step > 0) return run.checkpoint;',
    ],
  ]),
  ...breaking('sdk/loop/retry.ts', 'test/sdk/loop/gather.test.ts', [
    ['what is tried again is tried once more than asked for', 'attempt >= maxAttempts', 'attempt > maxAttempts'],
    ['a call of an attempt that has ended is tried again', 'if (isOver || ', 'if ('],
  ]),
  ...breaking('sdk/loop/iterate-dataset.ts', 'test/sdk/loop/iterate-dataset.test.ts', [
    [
      'a script that goes on gets other batches',
      "deriveSeed([seed, 'dataset', epoch])",
      "deriveSeed([seed, 'dataset', initialStep])",
    ],
  ]),
  ...breaking('sdk/mcp/attempt-calls.ts', 'test/mcp/interrupted.test.ts', [
    [
      'a call of a tool server that may not be made twice is made again after a kill',
      'if (isReadOnly || isIdempotent || this.#settings.replay) return true;',
      'if (key !== "") return true;',
    ],
  ]),
  ...breaking('sdk/mcp/attempt-calls.ts', 'test/mcp/http.test.ts', [
    [
      'a secret of a tool server reaches the model',
      'bound(connection.redact(text), maxResultBytes)',
      'bound(text, maxResultBytes)',
    ],
  ]),
  ...breaking('sdk/ruler/score.ts', 'test/sdk/ruler/score.test.ts', [
    ["the judge's score is added to a reward that it replaces", 'judged.weights.agent * reward;', 'reward;'],
  ]),
  ...breaking('sdk/agent/check-agent.ts', 'test/sdk/define-agent.test.ts', [
    ['the run waits for a reward that has no weight', '[name] === 0', '[name] === -1'],
  ]),
];
