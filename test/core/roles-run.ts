/** A run whose agent has roles of every kind, at a position. */
import { readFileSync } from 'node:fs';

import { GroupResult, RunConfig, type Checkpoint } from '../../core/contract/contract.ts';
import { positionAt, type RunPosition } from '../../core/plan/step.ts';

const read = (name: string): unknown =>
  JSON.parse(readFileSync(new URL(`../contract/${name}.json`, import.meta.url), 'utf8'));

const SHA256 = 'a'.repeat(64);
export const checkpointAt = (step: number): Checkpoint => ({
  run: 'demo',
  branch: 0,
  step,
  manifestSha256: SHA256,
  adapterSha256: SHA256,
  adapters: { b: 'b'.repeat(64) },
});

const {
  supervised: _supervised,
  parent: _parent,
  startAdapter: _start,
  ...config
} = RunConfig.parse(read('RunConfig'));

export const CONFIG: RunConfig = {
  ...config,
  parent: null,
  maxStaleness: 0,
  seed: 7,
  roles: {
    white: { kind: 'policy', policy: 'main' },
    black: { kind: 'policy', policy: 'b' },
    user: { kind: 'hosted', model: 'openai/gpt-5-mini' },
    old: { kind: 'checkpoint', checkpoint: { ...checkpointAt(0), run: 'elsewhere' }, policy: 'main' },
    past: { kind: 'league', policy: 'b', every: 2, keep: 3 },
  },
  competing: true,
};

export const POSITION: RunPosition = positionAt({
  branch: 0,
  prepared: {
    scenarios: { key: `blobs/${SHA256}`, sha256: SHA256, bytes: 1 },
    trainScenarios: 10,
    evalScenarios: 4,
    heldOut: true,
    agentCodeSha256: SHA256,
  },
  step: 3,
  checkpoint: checkpointAt(3),
  dealt: 0,
  emptySteps: 0,
  start: checkpointAt(0),
  league: {
    past: [
      { checkpoint: checkpointAt(0), played: 4, won: 3 },
      { checkpoint: checkpointAt(2), played: 0, won: 0 },
    ],
  },
});

export const PLAYED: GroupResult[] = [
  { ...GroupResult.parse(read('GroupResult')), group: 0, judgedSha256: SHA256, use: 'trained' },
];
