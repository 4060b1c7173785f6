/**
 * `npm test` and `npm run test:all`: checks and tests of both languages, several at a time; the last line counts them (each
 * check counts as one). What follows `--` are parts of the titles of jobs, which are played alone; `--base REV` names what
 * the change is compared with, if not with where the branch left `origin/main`.
 */
import { parseArgs } from 'node:util';
import { JOBS } from './jobs.ts';
import { changedFiles, selectJobs, type Selected } from './select.ts';
import { Suite } from './suite.ts';
import { TIER_VARIABLE, treeHash } from './tier.ts';
import { describeFiles, describeTimings, spentSeconds } from './timings.ts';
import { openTools } from './tools.ts';

const startedAt = performance.now();
const { jobs, apart } = choose();

const suite = new Suite(await openTools(), apart);
const stop = () => suite.stop();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, stop);
try {
  await suite.play(jobs);
} finally {
  suite.close();
}

const minutes = (performance.now() - startedAt) / 60_000;
for (const failure of suite.failures) console.log(failure);
for (const line of ['', ...describeFiles(suite.files), '', ...describeTimings(suite.timings, spentSeconds(), minutes)])
  console.log(line);
const { passed, failed, skipped } = suite.total;
console.log(`\n${passed} passed, ${failed} failed, ${skipped} skipped`);
process.exit(suite.isStopped ? 130 : failed === 0 ? 0 : 1);

function choose(): Selected {
  const options = { all: { type: 'boolean', default: false }, base: { type: 'string' } } as const;
  try {
    const { values, positionals } = parseArgs({ options, allowPositionals: true });
    if (values.all) process.env[TIER_VARIABLE] = 'nightly';
    const changed = changedFiles(values.base ?? null);
    return selectJobs(JOBS, { everything: values.all, changed, seed: treeHash(), names: positionals });
  } catch (error) {
    console.error(`npm test: ${error instanceof Error ? error.message : String(error)}`);
    return process.exit(2);
  }
}
