/** Attempts that real processes play, through the gateway: what they are told, how they tell their reward, how they end. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';

import { createRandom } from '../../core/numbers/seeds.ts';
import { command, external, resource, ruler, type ProgramRequest } from '../../sdk/index.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { markOf, memoryJournal, MODEL, playAttempts, playOne, type PlayOptions } from './play.ts';
import { sharedEngine } from './shared-engine.ts';
import { ROLLOUT, script } from './program-script.ts';

const engine = await sharedEngine();

const play = (text: string, options: PlayOptions = {}) =>
  playOne(engine, script(text), { rollout: ROLLOUT, ...options });

describe('a program tells its reward', () => {
  test.each([
    [
      'as the last line that it prints',
      `console.log('thinking'); console.log('{"reward": 0.5, "metrics": {"win": true}}')`,
    ],
    [
      'in its result file',
      `import fs from 'node:fs'; console.log('thinking');
      fs.writeFileSync(env.TEMPER_RESULT_FILE, '{"reward": 0.5, "metrics": {"win": true}}'); console.log('')`,
    ],
    ['by HTTP', `console.log('thinking'); await post('/attempt/result', { reward: 0.5, metrics: { win: true } })`],
  ])('%s', async (_, text) => {
    const attempt = await play(text);
    expect(attempt).toMatchObject({ status: 'ok', reward: 0.5, metrics: { win: true } });
    expect(attempt.logs[0]).toBe('thinking');
  });

  test('as a number alone, at the end of a line without an end', async () => {
    expect(await play(`process.stdout.write('a\\n0.25')`)).toMatchObject({ reward: 0.25, logs: ['a'] });
  });

  test.each([
    ['', /gave no reward; give \{"reward": 0.5.*TEMPER_RESULT_FILE/],
    [`console.log('done')`, /^ProgramError: the last line of stdout of .* must be JSON, got "done"/],
    [`console.log('{"reward": NaN}')`, /must be JSON, got "\{\\"reward\\": NaN\}"/],
    [`console.log('{"result": 1}')`, /may have the members reward, rewards and metrics, not "result"/],
    [`console.log('{"rewards": 1}')`, /must have an object as rewards/],
    [
      `console.log('{"reward": 1, "rewards": {"right": 1}}')`,
      /returned rewards by name, which have no weights; give the agent rewards: \{ name: 1 \}/,
    ],
    [`console.log('{"reward": "1"}')`, /must have a number as reward/],
    [`console.log('{"reward": 1, "metrics": [1]}')`, /must have an object as metrics/],
    [`console.log('1e999')`, /rollout must return a reward, a finite .*, got Infinity/],
    [`await post('/attempt/result', '[1]')`, /the result posted by .* must be a number or an object/],
  ])('and %j is none: the attempt has failed, as data', async (text, message) => {
    const attempt = await play(text);
    expect(attempt).toMatchObject({ status: 'failed', reward: null, failure: { type: 'AgentFailed' } });
    expect(attempt.failure?.message).toMatch(message);
  });
});

/** The policy may have that key, too. */
describe('the key that calls the model gives no reward', () => {
  const posting = `const { status } = await post('/attempt/result', '1'); console.log('post ' + status);`;

  test.each([
    ['prints', `console.log('{"reward": 0.25}')`, 'the last line of stdout of'],
    [
      'writes',
      `import fs from 'node:fs'; fs.writeFileSync(env.TEMPER_RESULT_FILE, '0.25'); console.log('')`,
      'the result file of',
    ],
  ])('over the one that the program %s itself', async (_, own, place) => {
    const attempt = await play(posting + own);
    expect(attempt).toMatchObject({ status: 'ok', reward: 0.25 });
    expect(attempt.logs).toEqual([
      'post 204',
      expect.stringMatching(`^the posted result has no effect, because ${place}`),
    ]);
  });

  test.each([
    ['external', { reward: external() }],
    ['ruler', { reward: ruler({ judge: 'openai/gpt-5-mini' }) }],
    ['rewardGroup', { rewardGroup: () => [0] }],
  ])('where others reward the attempts: %s', async (_, graded) => {
    const attempt = await play(posting, { graded });
    expect(attempt).toMatchObject({ status: 'ok', reward: null, logs: ['post 403'] });
    expect(await play(`${posting} console.log('{"metrics": {"win": true}}')`, { graded })).toMatchObject({
      metrics: { win: true },
    });
  });
});

test('a program is told what its resources are', async () => {
  const desk = resource({ scope: 'attempt', setup: () => ({ port: 4217 }), teardown: () => undefined });
  const text = `console.log(JSON.parse(env.TEMPER_RESOURCES ?? '{"desk": {"port": 0}}').desk.port)`;
  expect((await play(text, { needs: { desk } })).reward).toBe(4217);
  expect((await play(text)).reward).toBe(0);
});

test('a program is told its attempt, and no key but its own', async () => {
  const scenario = { id: 'one', text: 'ä"\n' };
  onTestFinished(() => void vi.unstubAllEnvs());
  vi.stubEnv('TEMPER_ENGINE_KEY', 'the engine’s');
  vi.stubEnv('OPENAI_ORG_ID', 'mine');
  let drawn = 0;
  await playOne(engine, ({ random }) => (drawn = random()), { scenario, rollout: ROLLOUT });
  const file = join(temporaryFolder(), 'told.json');
  const text = `import fs from 'node:fs'; const scenario = fs.readFileSync(env.TEMPER_SCENARIO_FILE, 'utf8');
    fs.writeFileSync(env.OWN_FILE, JSON.stringify({ env, scenario, cwd: process.cwd() })); console.log(1)`;
  const rollout = script(text, { env: { OWN_FILE: file } });
  expect(await playOne(engine, rollout, { scenario, rollout: ROLLOUT })).toMatchObject({ reward: 1 });
  const { env, scenario: told, cwd } = JSON.parse(readFileSync(file, 'utf8'));
  expect(JSON.parse(told)).toEqual(scenario);
  expect(JSON.parse(env.TEMPER_SCENARIO)).toEqual(scenario);
  expect(createRandom(Number(env.TEMPER_SEED))()).toBe(drawn);
  expect(env).toMatchObject({ TEMPER_MODEL: MODEL, TEMPER_TEMPERATURE: '1' });
  expect(env.OPENAI_BASE_URL).toBe(`${env.ANTHROPIC_BASE_URL}/v1`);
  expect(env.ANTHROPIC_AUTH_TOKEN).toBe(env.OPENAI_API_KEY);
  expect(env.ANTHROPIC_API_KEY).toBe(env.OPENAI_API_KEY);
  for (const name of ['TEMPER_ENGINE_KEY', 'OPENAI_ORG_ID']) expect(env).not.toHaveProperty(name);
  expect(cwd).toBe(process.cwd());
  expect(existsSync(env.TEMPER_SCENARIO_FILE)).toBe(false);
});

test('a scenario too long for a variable is in its file', async () => {
  const scenario = { id: 'one', text: 'ä'.repeat(60_000) };
  const text = `import fs from 'node:fs'; console.log(env.TEMPER_SCENARIO === undefined
    ? JSON.parse(fs.readFileSync(env.TEMPER_SCENARIO_FILE, 'utf8')).text.length : -1)`;
  expect(await play(text, { scenario })).toMatchObject({ reward: 60_000 });
});

test('what a program prints is the log, stdout before stderr, without key and port', async () => {
  const attempt = await play(`console.error('warned'); console.log('key', env.OPENAI_API_KEY);
    console.log(env.OPENAI_BASE_URL); console.log('1')`);
  expect(attempt.logs).toEqual(['key <key>', 'http://gateway/v1', 'warned']);
});

test('a call through the gateway has the key, the seed and the answer of a call in this process', async () => {
  const messages = [{ role: 'user' as const, content: 'Where is the key?' }];
  const inside = await playOne(engine, async ({ openai, model }) => {
    const { choices } = await openai.chat.completions.create({ model, messages, max_tokens: 3 });
    return Number(choices[0]?.message.content);
  });
  const outside = await play(`console.log(await say('Where is the key?', { max_tokens: 3 }))`);
  expect(outside).toEqual(inside);
});

test('what must be the run’s becomes the run’s, and the log says so once', async () => {
  const attempt = await play(
    `for (const content of ['a', 'b']) await ask(content, { model: 'gpt-5', temperature: 0.2, top_p: 1, seed: 7, max_tokens: 32000 });
    console.log(1)`,
  );
  expect(attempt.logs).toEqual([
    'gateway: model "gpt-5" is the run\'s model here',
    "gateway: max_tokens 32000 is the run's 8 here",
    "gateway: temperature 0.2 has no effect, because sampling is the run's",
    "gateway: seed 7 has no effect, because sampling is the run's",
  ]);
  expect(attempt.calls.map(({ request }) => request)).toMatchObject([
    { temperature: 1, max_tokens: 8 },
    { max_tokens: 8 },
  ]);
  expect(attempt.calls[0]?.request).not.toHaveProperty('seed');
});

test('rewrite takes out of a prompt what is another one each time', async () => {
  const rewrite = (request: ProgramRequest): ProgramRequest => ({
    ...request,
    messages: request.messages.map((message) => ({
      ...message,
      content: String(message.content).replace(/\d+ ns/, 'now'),
    })),
  });
  const text = `console.log(await say('It is ' + process.hrtime.bigint() + ' ns.'))`;
  const journal = memoryJournal();
  const [first, again] = [
    await playOne(engine, script(text, { rewrite }), { rollout: ROLLOUT, journal }),
    await playOne(engine, script(text, { rewrite }), { rollout: ROLLOUT, journal }),
  ];
  expect(again).toEqual(first);
  expect(engine.executed).toHaveLength(1);
  expect(first.calls[0]?.request.messages).toEqual([{ role: 'user', content: 'It is now.' }]);
  const wrong = await playOne(engine, script(text, { rewrite: () => 1 as never }), { rollout: ROLLOUT });
  expect(wrong.failure?.message).toBe('rewrite must return the request with its messages, got 1');
});

test('a request that training refuses fails the attempt, and no other', async () => {
  const text = `const more = env.TEMPER_SCENARIO.includes('wrong') ? { logit_bias: { 5: -100 } } : {};
    const { error } = await ask('a', more); console.log(error ? 0 : 1)`;
  const [wrong, right] = await Promise.all([play(text, { scenario: { id: 'wrong' } }), play(text)]);
  expect(wrong).toMatchObject({ status: 'failed', failure: { type: 'AgentFailed' } });
  expect(wrong.failure?.message).toMatch(/logit_bias cannot be set while training/);
  expect(right).toMatchObject({ status: 'ok', reward: 1 });
});

test('a request that the engine refuses fails the attempt, in the engine’s words', async () => {
  engine.failNext({ status: 400, body: '{"error": {"message": "no role x here", "type": "BadConfig"}}' });
  const attempt = await play(`await ask('a'); console.log(1)`);
  expect(attempt).toMatchObject({ status: 'failed', failure: { type: 'AgentFailed', message: 'no role x here' } });
});

test('a program that was killed asks again, and pays for nothing twice', async () => {
  const journal = memoryJournal();
  const calm = await playOne(engine, script(THREE_TURNS), { rollout: ROLLOUT });
  const paid = [];
  for (const last of [1, 2, 3]) {
    engine.executed.length = 0;
    const mark = await markOf(
      playOne(engine, script(`const last = ${last};${THREE_TURNS}`), { rollout: ROLLOUT, journal }),
    );
    expect(mark).toMatchObject({ type: 'ProgramFailed', message: expect.stringContaining('SIGKILL') });
    paid.push(engine.executed.length);
  }
  engine.executed.length = 0;
  expect(await playOne(engine, script(THREE_TURNS), { rollout: ROLLOUT, journal })).toEqual(calm);
  expect([...paid, engine.executed.length]).toEqual([1, 1, 1, 0]);
});

test('a program that is ended at the same place each time has failed, as data', async () => {
  const journal = memoryJournal();
  const dying = () => playOne(engine, script(`const last = 2;${THREE_TURNS}`), { rollout: ROLLOUT, journal });
  for (let time = 1; time < 5; time++) expect(await markOf(dying())).toMatchObject({ type: 'ProgramFailed' });
  const failed = await dying();
  const words = 'was ended by SIGKILL 5 times, each time after 2 calls';
  expect(failed).toMatchObject({ status: 'failed', reward: null, failure: { type: 'AgentFailed' } });
  expect(failed.failure?.message).toContain(words);
  expect(failed.calls).toHaveLength(2);
});

test('where the last line of stdout is the result, nothing else is', async () => {
  const other = `const { status } = await post('/attempt/result', '1'); console.log(status, env.TEMPER_RESULT_FILE);`;
  const graded = script(`${other} console.log(JSON.stringify({ reward: 0 }))`, { result: 'stdout' });
  const attempt = await playOne(engine, graded, { rollout: ROLLOUT });
  expect(attempt).toMatchObject({ status: 'ok', reward: 0, logs: ['403 undefined'] });
  const silent = await playOne(engine, script(other, { result: 'stdout' }), { rollout: ROLLOUT });
  expect(silent.status).toBe('failed');
});

/** Each question has the answer before in it; `last`: after which answer it dies. */
const THREE_TURNS = `
let said = 'begin';
for (let turn = 1; turn <= 3; turn++) {
  said = await say('after ' + said);
  if (globalThis.last === turn || (typeof last !== 'undefined' && last === turn)) process.kill(process.pid, 'SIGKILL');
}
console.log(said);`;

test('no more processes run at once than the program’s concurrency, over groups', async () => {
  const file = join(temporaryFolder(), 'running');
  const text = `import fs from 'node:fs'; fs.appendFileSync(env.OWN_FILE, '+'); await ask('a'); fs.appendFileSync(env.OWN_FILE, '-'); console.log(1)`;
  const rollout = script(text, { concurrency: 2, env: { OWN_FILE: file } });
  const groups = [1, 2].map(() => playAttempts(engine, rollout, { attempts: 2, rollout: ROLLOUT }));
  await Promise.all(groups);
  let most = 0;
  let now = 0;
  for (const sign of readFileSync(file, 'utf8')) most = Math.max(most, (now += sign === '+' ? 1 : -1));
  expect(now).toBe(0);
  expect(most).toBeLessThanOrEqual(2);
});

test('a rollout in TypeScript may play a program, and grade what it did', async () => {
  const program = script(`console.log(await say('a'))`, { concurrency: 1 });
  const attempts = await playAttempts(
    engine,
    async (context) => {
      const said = await program(context);
      return { reward: said === 3 ? 1 : 0, metrics: { said: Number(said) } };
    },
    { attempts: 3, rollout: ROLLOUT },
  );
  expect(attempts.map(({ status }) => status)).toEqual(['ok', 'ok', 'ok']);
  expect(attempts.every(({ reward, metrics }) => reward === (metrics['said'] === 3 ? 1 : 0))).toBe(true);
});

test('a program that is not there ends the run with one line', async () => {
  const mark = await markOf(playOne(engine, command(['no-such-program-here'])));
  expect(mark).toMatchObject({ type: 'BadConfig' });
  expect(mark.message).toMatch(/no-such-program-here cannot be started \(ENOENT\); install/);
});

test.each([
  [() => command([]), /command must be given a list of texts, the program first, got \[\]/],
  [() => command('python agent.py' as never), /list of texts/],
  [() => command(['a'], { env: { A: 1 as never } }), /env of command must be texts/],
  [() => command(['a'], { result: 'file' as never }), /result of command must be 'any' or 'stdout', got "file"/],
  [() => command(['a'], { concurrency: 0 }), /concurrency of command must be a whole number of at least 1/],
])('a mistake is refused where it is written: %s', (make, message) => {
  expect(make).toThrow(message);
});
