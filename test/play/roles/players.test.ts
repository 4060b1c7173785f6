import { expect, test } from 'vitest';

import { evaluatedPlayers, playersOf } from '../../../play/roles/role-definition.ts';
import { planEvaluation } from '../../../core/plan/evaluation.ts';
import { planTopUp } from '../../../core/plan/window.ts';
import { CONFIG, POSITION } from '../../core/roles-run.ts';

const modelsOf = (players: ReturnType<typeof playersOf>) =>
  Object.fromEntries(Object.entries(players?.seated ?? {}).map(([role, { model }]) => [role, model]));

test("each role of a group is played by its policy's name, and a hosted one by nobody of the engine", () => {
  const players = playersOf(planTopUp(CONFIG, POSITION)[0]!);
  expect(modelsOf(players)).toEqual({
    white: 'demo@3',
    black: 'demo@3:b',
    old: 'elsewhere@0',
    past: expect.stringMatching(/^demo@[02]:b$/),
  });
  expect(players?.trained).toEqual({ white: 'main', black: 'b' });
});

test('competing roles are evaluated one by one, the others as they were at the start', () => {
  const [white, black] = evaluatedPlayers(planEvaluation(CONFIG, POSITION));
  expect(modelsOf(white!)).toEqual({ white: 'demo@3', black: 'demo@0:b', old: 'elsewhere@0', past: 'demo@0:b' });
  expect(modelsOf(black!)).toEqual({ white: 'demo@0', black: 'demo@3:b', old: 'elsewhere@0', past: 'demo@0:b' });
  expect([white?.trained, black?.trained]).toEqual([{ white: 'main' }, { black: 'b' }]);
});

test('roles that do not compete are evaluated together, and an agent without roles as before', () => {
  const { competing: _, ...together } = CONFIG;
  const { start: _start, ...position } = POSITION;
  expect(evaluatedPlayers(planEvaluation(together, { ...position, start: POSITION.start! }))).toHaveLength(1);
  const { roles: _roles, ...plain } = together;
  expect(evaluatedPlayers(planEvaluation(plain, position))).toEqual([null]);
});
