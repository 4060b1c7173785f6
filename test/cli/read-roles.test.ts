import { expect, test } from 'vitest';

import { defaultRunConfig } from '../../core/rules/run-defaults.ts';
import { roleTrainOptions } from '../../core/rules/roles.ts';
import { roleOptions } from '../../cli/planning/read-roles.ts';
import { defineAgent, frozen, league, policy } from '../../sdk/index.ts';
import type { FrozenPlayer } from '../../play/roles/role-definition.ts';
import { publishRun } from '../../store/records/runs/publish-run.ts';
import { temporaryStore } from '../temporary-folder.ts';

const sources = { store: temporaryStore(), env: {} };
const agentOf = (old: FrozenPlayer) =>
  defineAgent({
    name: 'game',
    scenarios: [{ id: 'a' }],
    roles: { white: policy(), black: policy('b'), past: league({ of: 'b', every: 10, keep: 5 }), old },
    competing: true,
    rollout: () => ({ roleRewards: { white: 1, black: -1, past: 0 } }),
  });

test('roles are recorded with their players, and rewards that oppose each other have a running mean', async () => {
  const agent = agentOf(frozen('openai/gpt-5-mini'));
  expect(await roleOptions(agent, sources)).toEqual({
    competing: true,
    roles: {
      white: { kind: 'policy', policy: 'main' },
      black: { kind: 'policy', policy: 'b' },
      past: { kind: 'league', policy: 'b', every: 10, keep: 5 },
      old: { kind: 'hosted', model: 'openai/gpt-5-mini' },
    },
  });
  expect(roleTrainOptions(agent)).toEqual({ baseline: 'rae' });
});

test('a role frozen at a checkpoint of a run that has none is refused in one line', async () => {
  const config = defaultRunConfig({ run: 'empty', agent: 'game', baseModel: 'pocket' });
  await publishRun(sources.store, { config, agentCodeSha256: 'a'.repeat(64) });
  const refusal = /empty@[04] is not committed; pass another/;
  await expect(roleOptions(agentOf(frozen('empty@0')), sources)).rejects.toThrow(refusal);
  await expect(roleOptions(agentOf(frozen('empty@4:b')), sources)).rejects.toThrow(refusal);
});

test.each([
  ['nobody@3', /nobody/],
  ['nobody@latest', /the role old must be frozen at a step .* got nobody@latest; name it as RUN@STEP/],
  ['mars/gpt', /the role old must be frozen as a hosted model .* got mars\/gpt/],
])('a role frozen as %s is refused in one line', async (player, refusal) => {
  await expect(roleOptions(agentOf(frozen(player)), sources)).rejects.toThrow(refusal);
});
