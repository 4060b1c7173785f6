/** Which engine a run is planned for: that of its newest checkpoint on a GPU, and none that a flag did not name on a CPU. */
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { decideRunEngine } from '../../cli/planning/check-engine.ts';
import { trainCommand } from '../../cli/train/command.ts';
import { openStore } from '../../store/bytes/open-store.ts';
import { readRun } from '../../store/records/runs/run-reader.ts';
import type { Store } from '../../store/store.ts';
import { makeRun } from '../store/records/made-run.ts';
import { fakePrograms, type FakePrograms } from '../workers/install/fake-programs.ts';
import { temporaryProject } from './fixture-store.ts';
import { contextOf } from './run-cli.ts';

let project: string;
let store: Store;
let programs: FakePrograms;

beforeEach(async () => {
  project = temporaryProject();
  store = await openStore(join(project, '.temper', 'store'));
  programs = fakePrograms();
});

async function decide(run: string, ...flags: string[]) {
  const env = { ...programs.env, TEMPER_VLLM_PYTHON: '/vllm/python' };
  const context = contextOf(trainCommand, project, ['agent.ts', '--base-model', 'pocket', ...flags], env);
  const known = await readRun(store, run);
  return decideRunEngine(known!.file.config, known, store, context.flags, context);
}

test.runIf(process.platform === 'linux')(
  'a run on a GPU goes on with the engine of its newest checkpoint',
  async () => {
    await makeRun(store, { run: 'ours' });
    await makeRun(store, { run: 'theirs', platform: { engine: 'vllm 0.32.0', engineFlags: '' } });
    expect(await decide('theirs')).toEqual({ kind: 'embedded', reason: null, policies: 1 });
    programs.add('nvidia-smi', `console.log('NVIDIA H200');`);
    const reason = 'because the run has been sampled with it so far (--engine changes that)';
    expect(await decide('ours')).toEqual({ kind: 'embedded', reason, policies: 1 });
    expect(await decide('theirs')).toEqual({ kind: 'vllm', reason, policies: 1 });
    expect(await decide('theirs', '--engine', 'embedded')).toEqual({
      kind: 'embedded',
      reason: 'as --engine says',
      policies: 1,
    });
    expect(await decide('theirs', '--device', 'cpu')).toEqual({ kind: 'embedded', reason: null, policies: 1 });
  },
);
