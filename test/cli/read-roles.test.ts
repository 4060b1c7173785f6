import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';

import { roleOptions, roleTrainOptions } from '../../cli/planning/read-roles.ts';
import { defineAgent, frozen, league, policy } from '../../sdk/index.ts';
import type { FrozenPlayer } from '../../play/roles/role-definition.ts';
import { FileStore } from '../../store/bytes/file-store.ts';

const sources = { store: new FileStore(mkdtempSync(join(tmpdir(), 'temper-roles-'))), env: {} };
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

test.each([
  ['nobody@3', /nobody/],
  ['nobody@latest', /the role old must be frozen at a step .* got nobody@latest; name it as RUN@STEP/],
  ['mars/gpt', /the role old must be frozen as a hosted model .* got mars\/gpt/],
])('a role frozen as %s is refused in one line', async (player, refusal) => {
  await expect(roleOptions(agentOf(frozen(player)), sources)).rejects.toThrow(refusal);
});
