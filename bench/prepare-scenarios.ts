/** Prepares a run with the scenarios of a file; prints how long that took, and the largest memory of this process. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MockActivityEnvironment } from '@temporalio/testing';
import { DefaultLogger } from '@temporalio/worker';

import { createPrepareActivities } from '../activities/prepare.ts';
import { createScenarioReader } from '../activities/scenario-reader.ts';
import type { Prepared } from '../core/contract/contract.ts';
import { sha256Hex } from '../core/text/hashes.ts';
import { defaultRunConfig } from '../core/rules/run-defaults.ts';
import { defineAgent, sqlite } from '../sdk/index.ts';
import { FileStore } from '../store/bytes/file-store.ts';

const [file = '', count = ''] = process.argv.slice(2);
const scenarios = file.endsWith('.db') ? sqlite(file, 'select id, question, answer from tasks') : file;
const agent = defineAgent({ name: 'many', scenarios, rollout: () => 0 });
const root = mkdtempSync(join(tmpdir(), 'temper-bench-store-'));
const store = new FileStore(root);
const { prepare } = createPrepareActivities({
  store,
  agents: new Map([['many', { agent, codeSha256: sha256Hex('many') }]]),
  logger: { info: () => undefined, warn: () => undefined },
  pauses: { longestPauseMs: () => 0 },
});
const config = defaultRunConfig({ run: 'many', agent: 'many', baseModel: 'pocket', maxScenarios: Number(count) });
const atStart = { ...process.resourceUsage(), mib: peakMib() };
const startedAt = performance.now();
const context = new MockActivityEnvironment({ heartbeatTimeoutMs: 10_000 }, { logger: new DefaultLogger('ERROR') });
const prepared = (await context.run(prepare, { config })) as Prepared;
const seconds = (performance.now() - startedAt) / 1000;
const mib = { peak: peakMib(), before: atStart.mib };
const { userCPUTime, systemCPUTime } = process.resourceUsage();
const cpuSeconds = (userCPUTime + systemCPUTime - atStart.userCPUTime - atStart.systemCPUTime) / 1e6;
const readAt = performance.now();
const read = createScenarioReader(store);
for (let group = 0; group < 64; group++) await read(prepared.scenarios, (group * 7919) % Number(count));
const readSeconds = (performance.now() - readAt) / 1000;
rmSync(root, { recursive: true });
console.log(JSON.stringify({ trained: prepared.trainScenarios, seconds, cpuSeconds, mib, readSeconds }));

/** Linux counts the largest memory of the process that started this one in `maxRSS`. */
function peakMib(): number {
  if (process.platform !== 'linux') return process.resourceUsage().maxRSS / 1024;
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]) / 1024;
}
