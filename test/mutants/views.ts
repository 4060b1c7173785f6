/** Broken lines of the views of a store. */
import type { Mutant } from './mutant.ts';

const LOCK_TEST = 'test/views/index-lock.test.ts';
const MATCH_TEST = 'test/views/match.test.ts';
const INDEX_TEST = 'test/views/index.test.ts';

export const VIEWS: readonly Mutant[] = [
  {
    name: 'a page of attempts leaves out its last group',
    file: 'views/index/pick-groups.ts',
    find: 'else if (at < offset + limit) picked.push(group);',
    replace: 'else if (at + group.rows < offset + limit) picked.push(group);',
    test: INDEX_TEST,
  },
  {
    name: 'rows without a reward come first',
    file: 'views/index/match.ts',
    find: 'Number(left === null) - Number(right === null)',
    replace: 'Number(right === null) - Number(left === null)',
    test: MATCH_TEST,
  },
  {
    name: 'the least reward of a search is not one that it finds',
    file: 'views/index/match.ts',
    find: 'reward >= minReward',
    replace: 'reward > minReward',
    test: MATCH_TEST,
  },
  {
    name: 'a torn line of the index is read',
    file: 'views/index/index-files.ts',
    find: ' || crc32(line.subarray(tab + 1)) !== head[6]',
    replace: '',
    test: INDEX_TEST,
  },
  {
    name: 'the index of a deleted run answers for another of its name',
    file: 'views/index/run-index.ts',
    find: 'hashBytes(bytes) === this.#identity',
    replace: 'this.#identity !== ""',
    test: INDEX_TEST,
  },
  {
    name: 'a group keeps the rows that it had before its verdict',
    file: 'views/index/run-index.ts',
    find: '(known.isJudged || !isJudged)',
    replace: 'known.rows >= 0',
    test: INDEX_TEST,
  },
  {
    name: 'two processes write the index at once',
    file: 'views/index/index-lock.ts',
    find: 'if (!(await isStale(file))) return null;',
    replace: '',
    test: LOCK_TEST,
  },
  {
    name: 'a process removes the lock of another',
    file: 'views/index/index-lock.ts',
    find: 'if (holder === token) ',
    replace: 'if (holder !== null) ',
    test: LOCK_TEST,
  },
  {
    name: 'a step before a rollback is looked for on the new branch',
    file: 'views/attempts/step.ts',
    find: "readCount(query, 'branch') ?? branchOfStep(lineage, Number(step))",
    replace: "readCount(query, 'branch') ?? newestBranch(facts)",
    test: 'test/views/attempts/read.test.ts',
  },
  {
    name: 'a call in a form of its own has no words',
    file: 'views/attempts/messages.ts',
    find: "return { name: '', arguments: JSON.stringify(call) ?? 'null' };",
    replace: "return { name: '', arguments: '' };",
    test: 'test/views/attempts/messages.test.ts',
  },
  {
    name: 'a client gets an answer from before a change',
    file: 'views/context/shared-answers.ts',
    find: '      this.#making.delete(key);\n',
    replace: '',
    test: 'test/views/shared-answers.test.ts',
  },
  {
    name: 'tokens of the prompt are shown as sampled',
    file: 'views/attempts/tokens.ts',
    find: 'sampledFrom: promptTokenIds.length - shared,',
    replace: 'sampledFrom: 0,',
    test: 'test/views/attempts/tokens.test.ts',
  },
];
