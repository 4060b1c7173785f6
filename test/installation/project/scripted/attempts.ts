/** Many attempts at once by all SDKs, whose clients know nothing of them; and clients of attempts that are over. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { leaked } from './no-network.ts';
import { defineAgent, type RolloutContext } from 'temper-rl';
import { playAgent, type AnswerFunction } from 'temper-rl/testing';
import { createPaths } from './paths.ts';

const ATTEMPTS = 24;
const HOSTED = 'gpt-5-mini';
const ambient = createPaths({ baseURL: 'https://api.openai.com/v1', apiKey: 'of-the-user', model: HOSTED });

interface Numbered {
  readonly id: string;
}

const questionOf = ({ id }: Numbered, path: string) => `${id} by ${path}`;

const agent = defineAgent<Numbered>({
  name: 'together',
  scenarios: [],
  captureModel: HOSTED,
  async rollout({ scenario }) {
    const asking = Object.entries(ambient).map(async ([path, ask], index) => {
      await sleep(index % 3);
      assert.equal(await ask(questionOf(scenario, path)), `re ${questionOf(scenario, path)}`);
    });
    await Promise.all(asking);
    return 1;
  },
});

/** The last words of the prompt, after a time that mixes the attempts' answers. */
const echo: AnswerFunction = async ({ messages }, index) => {
  await sleep((index * 7) % 5);
  return `re ${messages.at(-1)?.content}`;
};

test(`${ATTEMPTS} attempts at once by ${Object.keys(ambient).length} paths: no call is lost, and none is another's`, async () => {
  const scenarios = Array.from({ length: ATTEMPTS }, (_, index) => ({ id: `attempt ${index}` }));
  const played = await Promise.all(scenarios.map((scenario) => playAgent(agent, { scenario, answers: echo })));
  for (const [index, { error, calls }] of played.entries()) {
    assert.equal(error, undefined);
    const asked = calls.map(({ request }) => String(request.messages.at(-1)?.content));
    const expected = Object.keys(ambient).map((path) => questionOf(scenarios[index]!, path));
    assert.deepEqual(asked.toSorted(), expected.toSorted());
  }
  assert.deepEqual(leaked, []);
});

for (const path of Object.keys(ambient)) {
  test(`${path} asks an attempt that is over exactly once, with the retries that it has by default`, async () => {
    let requests = 0;
    const insist = async ({ baseURL, apiKey, model, fetch }: RolloutContext) => {
      // Refused, which marks the attempt: whatever it does from here on is no data, and is not waited for.
      const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'x' }], seed: 1 });
      await fetch(`${baseURL}/chat/completions`, { method: 'POST', body });
      const counted: typeof fetch = (...request) => {
        requests += 1;
        return fetch(...request);
      };
      const ask = createPaths({ baseURL, apiKey, model, fetch: counted })[path]!;
      await assert.rejects(ask('once?'));
    };
    let insisting = Promise.resolve();
    const rollout = (context: RolloutContext) => (insisting = insist(context)).then(() => 0);
    const over = defineAgent({ name: 'over', scenarios: [], rollout });
    await assert.rejects(playAgent(over, { scenario: { id: 'one' }, answers: [] }), /seed is the run's/);
    // The refusal that an attempt gets after its end keeps no process alive.
    const alive = setInterval(() => undefined, 1000);
    await insisting.finally(() => clearInterval(alive));
    assert.equal(requests, 1);
  });
}
