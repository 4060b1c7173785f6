/** Broken lines of the views of a store. */
import { breaking, type Mutant } from './mutant.ts';

export const VIEWS: readonly Mutant[] = [
  ...breaking('views/index/search-files.ts', 'test/views/index.test.ts', [
    [
      'a page of attempts leaves out its last group',
      'else if (at < offset + limit) picked.push(group);',
      'else if (at + group.rows < offset + limit) picked.push(group);',
    ],
  ]),
  ...breaking('views/api/attempt-query.ts', 'test/views/match.test.ts', [
    [
      'rows without a reward come first',
      'Number(left === null) - Number(right === null)',
      'Number(right === null) - Number(left === null)',
    ],
    ['the least reward of a search is not one that it finds', 'reward >= minReward', 'reward > minReward'],
  ]),
  ...breaking('views/index/index-files.ts', 'test/views/index.test.ts', [
    ['a torn line of the index is read', ' || crc32(line.subarray(tab + 1)) !== head[6]', ''],
  ]),
  ...breaking('views/index/run-index.ts', 'test/views/index.test.ts', [
    [
      'the index of a deleted run answers for another of its name',
      'hashBytes(bytes) === this.#identity',
      'this.#identity !== ""',
    ],
    ['a group keeps the rows that it had before its verdict', '(known.isJudged || !isJudged)', 'known.rows >= 0'],
  ]),
  ...breaking('views/attempts/step.ts', 'test/views/attempts/read.test.ts', [
    [
      'a step before a rollback is looked for on the new branch',
      "readCount(query, 'branch') ?? branchOfStep(lineage, Number(step))",
      "readCount(query, 'branch') ?? newestBranch(facts)",
    ],
  ]),
  ...breaking('views/attempts/messages.ts', 'test/views/attempts/messages.test.ts', [
    [
      'a call in a form of its own has no words',
      "return { name: '', arguments: JSON.stringify(call) ?? 'null' };",
      "return { name: '', arguments: '' };",
    ],
  ]),
  ...breaking('views/context/context.ts', 'test/views/shared-answers.test.ts', [
    ['a client gets an answer from before a change', '      this.#making.delete(key);\n', ''],
  ]),
  ...breaking('views/attempts/tokens.ts', 'test/views/attempts/tokens.test.ts', [
    ['tokens of the prompt are shown as sampled', 'sampledFrom: promptTokenIds.length - shared,', 'sampledFrom: 0,'],
  ]),
];
