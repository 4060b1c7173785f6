/** Text to SQL: what queries earn, and which are not run. */
import { expect, test } from 'vitest';
import agent from '../../examples/text-to-sql/agent.ts';
import * as guests from '../../examples/text-to-sql/guests.ts';
import { playAgent } from '../../sdk/testing/index.ts';

const [asked] = guests.trainingQuestions;

test.each([
  ['the right query', asked!.sql, 1, { correct: true, runs: true }],
  ['another query', 'SELECT 1', 0.1, { correct: false, runs: true }],
  ['a query that is refused', 'DELETE FROM guests', 0, { correct: false, runs: false }],
])('the agent says a query, once: %s', async (_, answer, reward, metrics) => {
  const played = await playAgent(agent, { scenario: asked!, answers: [answer] });
  expect(played).toMatchObject({ reward, metrics });
  expect(played.calls[0]!.request.messages).toEqual([{ role: 'user', content: asked!.text }]);
});

test.each([
  "ATTACH 'file.db' AS other",
  'SELECT 1; DROP TABLE guests',
  'SELECT name FROM guests WHERE random() > 0',
  'SELECT (WITH c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c)',
  'SELECT 1 FROM guests, guests b, guests c, guests d, guests e',
])('a query that is not safe is not run: %s', async (answer) => {
  const played = await playAgent(agent, { scenario: asked!, answers: [answer] });
  expect(played).toMatchObject({ reward: 0, metrics: { runs: false } });
});
