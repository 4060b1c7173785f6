import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';

import {
  gatherTrajectoryGroups,
  Model,
  retry,
  Trajectory,
  TrajectoryGroup,
  trajectoryGroupBatches,
  type Attempt,
  type TrainableModel,
} from '../../../sdk/index.ts';
import { readGroups } from '../../../store/records/runs/run-reader.ts';
import { FakeWorld } from './fake-backend.ts';

const world = FakeWorld.ofEachTest();

/** One call, worth the digit that was answered. */
async function play(model: TrainableModel, question: string): Promise<Trajectory> {
  const messages = [{ role: 'user' as const, content: question }];
  const completion = await model.openai().chat.completions.create({ model: model.name, messages });
  const choice = completion.choices[0]!;
  return new Trajectory({ messagesAndChoices: [...messages, choice], reward: Number(choice.message.content) });
}

function groupOf(attempts: Attempt | Attempt[], metadata = {}): TrajectoryGroup {
  return new TrajectoryGroup(Array.isArray(attempts) ? attempts : [attempts, attempts, attempts], { metadata });
}

const asking = (model: TrainableModel, question: string) => groupOf(() => play(model, question), { id: question });

async function storedRollouts() {
  const [group] = await readGroups(world.store, { run: 'demo.one', branch: 0, step: 1 });
  return group!.rollouts;
}

test('a gathered group stands in the store as a played one: exact tokens, rewards, the scenario, who sampled', async () => {
  const model = await world.model();
  const [group] = await gatherTrajectoryGroups([asking(model, 'a digit?')], { model });
  expect(group?.trajectories).toHaveLength(3);
  expect(group?.trajectories[0]?.messages()).toMatchObject([
    { role: 'user', content: 'a digit?' },
    { role: 'assistant' },
  ]);
  const { header, attempts } = await storedRollouts();
  expect(header).toMatchObject({ scenarioId: 'a digit?', step: 1, group: 0, attempts: 3 });
  for (const [index, attempt] of attempts.entries()) {
    expect(attempt.reward).toBe(group!.trajectories[index]!.reward);
    expect(attempt.calls).toHaveLength(1);
    expect(attempt.calls[0]!.tokenIds).toHaveLength(2);
    expect(attempt.calls[0]!.adapterSha256).toBe(header.adapterSha256);
  }
  expect(new Set(attempts.map(({ calls }) => calls[0]!.message.content)).size).toBeGreaterThan(1);
});

test('what was finished is found again by the next script, and nothing is asked twice', async () => {
  const first = await world.model();
  const before = await gatherTrajectoryGroups([asking(first, 'one'), asking(first, 'two')], { model: first });
  const asked = world.engine.executed.length;
  const second = await world.model();
  const never: Attempt = () => {
    throw new Error('it was played before');
  };
  const after = await gatherTrajectoryGroups([groupOf(never, { id: 'one' }), groupOf(never, { id: 'two' })], {
    model: second,
  });
  expect(world.engine.executed).toHaveLength(asked);
  expect(after.map(({ trajectories }) => trajectories)).toEqual(before.map(({ trajectories }) => trajectories));
});

test('a group that was not finished is played from its journal: only what was not answered is asked', async () => {
  const model = await world.model();
  const answered: string[] = [];
  const fails: Attempt = async () => {
    answered.push((await play(model, 'paid')).toString());
    // Until then nobody has failed: a failure ends the others in the middle of their calls.
    while (answered.length < 3) await sleep(5);
    throw new Error('mend me');
  };
  const mended: Attempt = async () => play(model, 'paid');
  await expect(gatherTrajectoryGroups([groupOf(fails)], { model })).rejects.toThrow(/mend me.*maxExceptions/);
  expect(world.engine.executed).toHaveLength(3);
  const again = await world.model();
  const [group] = await gatherTrajectoryGroups([groupOf(mended)], { model: again });
  expect(group?.trajectories).toHaveLength(3);
  expect(world.engine.executed).toHaveLength(3);
});

test('the same script with other attempts or other metadata in the same place is refused, naming both', async () => {
  const model = await world.model();
  await gatherTrajectoryGroups([asking(model, 'one')], { model });
  const again = await world.model();
  const gathering = gatherTrajectoryGroups([asking(again, 'another')], { model: again });
  await expect(gathering).rejects.toMatchObject({ type: 'StepConflict' });
});

test.each([
  [0, 1, false],
  [1, 1, true],
  [1, 2, false],
  [0.5, 3, true],
  [0.5, 4, false],
])('of six attempts maxExceptions %d lets %d fail: %s', async (maxExceptions, failing, passes) => {
  const model = await world.model();
  let played = 0;
  const attempt: Attempt = () => {
    if (played++ < failing) throw new Error('as planned');
    return play(model, 'fine');
  };
  const gathering = gatherTrajectoryGroups([groupOf(attempt), groupOf(attempt)], { model, maxExceptions });
  if (!passes) return expect(gathering).rejects.toMatchObject({ type: 'AgentFailed' });
  const groups = await gathering;
  expect(groups.flatMap(({ trajectories }) => trajectories)).toHaveLength(6 - failing);
  expect(groups.flatMap(({ exceptions }) => exceptions.map(({ type }) => type))).toHaveLength(failing);
  // A script that finds them counts them, too.
  const next = await world.model();
  const found = [groupOf(attempt), groupOf(attempt)];
  const again = gatherTrajectoryGroups(found, { model: next, maxExceptions: failing - 1 });
  await expect(again).rejects.toMatchObject({ type: 'AgentFailed' });
});

test.each([
  ['no trajectory', () => 7 as unknown as Trajectory, /must return a Trajectory, got 7/],
  ['no finite reward', () => new Trajectory({ messagesAndChoices: [], reward: Number.NaN }), /finite, got reward NaN/],
  [
    'a metric that is none',
    () => new Trajectory({ messagesAndChoices: [], reward: 1, metrics: { a: Infinity } }),
    /a Infinity/,
  ],
])('an attempt that returns %s has failed', async (_, attempt, message) => {
  const model = await world.model();
  const gathering = gatherTrajectoryGroups([groupOf(attempt)], { model });
  await expect(gathering).rejects.toThrow(message);
});

test('an attempt that never returns fails at its deadline, and one that calls for ever at its limit', async () => {
  const model = await world.model({ rollout: { attemptTimeoutMs: 200, maxCallsPerAttempt: 3 } });
  const waits: Attempt = () => new Promise(() => undefined);
  const asks: Attempt = async () => {
    for (;;) await play(model, 'again');
  };
  const gathering = gatherTrajectoryGroups([groupOf([waits, asks])], { model, maxExceptions: 2 });
  const [group] = await gathering;
  const messages = group!.exceptions.map(({ message }) => message);
  expect(messages[0]).toContain('attemptTimeoutMs 200 ms');
  expect(messages[1]).toContain('maxCallsPerAttempt 3 calls');
  expect(world.engine.executed.length).toBe(3);
});

test('of a gigabyte of logs the beginning is kept, and how much is missing', async () => {
  const model = await world.model();
  const logs = Array.from({ length: 1024 }, () => 'x'.repeat(2 ** 20));
  const loud: Attempt = async () => (await play(model, 'loud')).copy({ logs });
  await gatherTrajectoryGroups([groupOf([loud])], { model });
  const [attempt] = (await storedRollouts()).attempts;
  expect(attempt!.logs[0]).toMatch(/^x{4000} … \(1044576 more characters\)$/);
  expect(attempt!.logs.at(-1)).toMatch(/more lines were left out$/);
});

test('afterEach judges a group before it is kept; a group that it takes out stays out', async () => {
  const model = await world.model();
  const judge = (group: TrajectoryGroup) => {
    if (group.metadata['id'] === 'bad') return null;
    const [first, ...others] = group.trajectories.map((trajectory, index) =>
      trajectory.copy({ reward: index, explanation: `place ${index}` }),
    );
    return new TrajectoryGroup([first!, ...others.slice(1)], { metadata: group.metadata });
  };
  const gather = async (from: TrainableModel) =>
    gatherTrajectoryGroups([asking(from, 'good'), asking(from, 'bad')], { model: from, afterEach: judge });
  const groups = await gather(model);
  expect(groups).toHaveLength(1);
  expect(groups[0]!.trajectories.map(({ reward }) => reward)).toEqual([0, 2]);
  const asked = world.engine.executed.length;
  const again = await gather(await world.model());
  expect(again.map(({ trajectories }) => trajectories)).toEqual(groups.map(({ trajectories }) => trajectories));
  expect(again[0]!.trajectories[1]!.explanation).toBe('place 2');
  expect(world.engine.executed).toHaveLength(asked);
});

test('additional histories are kept and trained, a call that stands in no history is not', async () => {
  const model = await world.model();
  const attempt: Attempt = async () => {
    const main = await play(model, 'main');
    const sub = await play(model, 'sub-agent');
    await play(model, 'aside');
    main.additionalHistories.push({ messagesAndChoices: sub.messagesAndChoices, tools: null });
    return main;
  };
  const [group] = await gatherTrajectoryGroups([groupOf([attempt])], { model });
  expect(group!.trajectories[0]!.additionalHistories[0]!.messagesAndChoices[0]).toMatchObject({ content: 'sub-agent' });
  const [record] = (await storedRollouts()).attempts;
  const asked = record!.calls.map(({ request }) => String(request.messages[0]!.content));
  expect(new Set(asked)).toEqual(new Set(['main', 'sub-agent']));
  expect(record!.trajectory!.otherCalls).toHaveLength(1);
});

test('an attempt that outgrew the model is truncated, though its script went on', async () => {
  const model = await world.model();
  const body = JSON.stringify({ error: { message: 'too long', code: 'context_length_exceeded' } });
  world.engine.failWhen(({ request }) => (request.messages[0]?.content === 'long' ? { status: 400, body } : null));
  const attempt: Attempt = async ({ attempt: index }) => {
    if (index === 1) await expect(play(model, 'long')).rejects.toThrow(/too long/);
    return play(model, 'short');
  };
  await gatherTrajectoryGroups([groupOf(attempt)], { model });
  const { attempts } = await storedRollouts();
  expect(attempts.map(({ truncated }) => truncated)).toEqual([false, true, false]);
});

test('a side effect and a random number are the same in a repetition', async () => {
  const model = await world.model();
  const effects: number[] = [];
  let isMended = false;
  const attempt: Attempt = async ({ random, once }) => {
    const drawn = random();
    const kept = await once('tool', () => effects.push(drawn));
    if (!isMended) throw new Error('later');
    return new Trajectory({ messagesAndChoices: [], reward: drawn, metrics: { kept } });
  };
  await expect(gatherTrajectoryGroups([groupOf([attempt])], { model })).rejects.toThrow('later');
  isMended = true;
  const [group] = await gatherTrajectoryGroups([groupOf([attempt])], { model });
  expect(effects).toHaveLength(1);
  expect(group!.trajectories[0]!.reward).toBe(effects[0]);
});

test('retry tries as often as it may, and throws the last failure', async () => {
  let tries = 0;
  const failing = retry(() => Promise.reject(new Error(`failure ${(tries += 1)}`)), { maxAttempts: 2, delayMs: 0 });
  await expect(failing()).rejects.toThrow('failure 2');
});

test('retry tries again, and never in an attempt that has ended', async () => {
  const model = await world.model({ rollout: { maxCallsPerAttempt: 2 } });
  let tries = 0;
  const flaky = retry(
    async () => {
      tries += 1;
      if (tries < 3) throw new Error('flaky');
      return play(model, 'at last');
    },
    { delayMs: 1 },
  );
  const [group] = await gatherTrajectoryGroups([groupOf([flaky])], { model });
  expect([tries, group!.trajectories.length]).toEqual([3, 1]);
  let retried = 0;
  const options = { delayMs: 1, onRetry: () => (retried += 1) };
  const greedy = retry(() => Promise.all(['a', 'b', 'c'].map((question) => play(model, question))), options);
  let playing: Promise<unknown> = Promise.resolve();
  const attempt: Attempt = async () => {
    const all = greedy();
    playing = all;
    return (await all)[0]!;
  };
  const gathering = gatherTrajectoryGroups([groupOf([attempt])], { model });
  await expect(gathering).rejects.toThrow(/maxCallsPerAttempt 2 calls/);
  await expect(playing).rejects.toThrow(/maxCallsPerAttempt/);
  expect(retried).toBe(0);
});

test('batches come in the order given, each sampled by the policy that the one before made', async () => {
  const model = await world.model();
  const questions = ['a', 'b', 'c', 'd', 'e'];
  const seen: string[] = [];
  const groups = questions.map((question) => asking(model, question));
  for await (const batch of trajectoryGroupBatches(groups, { model, batchSize: 2, skipBatches: 0 })) {
    seen.push(batch.map(({ metadata }) => metadata['id']).join(''));
    await model.train(batch);
  }
  expect(seen).toEqual(['ab', 'cd', 'e']);
  expect(new Set(world.engine.executed.map(({ request }) => request.model))).toEqual(
    new Set(['demo.one@0', 'demo.one@1', 'demo.one@2']),
  );
});

test('what is no attempt is refused: a promise, trajectories and functions together, a finished group', async () => {
  const model = await world.model();
  const done = new Trajectory({ messagesAndChoices: [], reward: 0 });
  expect(() => new TrajectoryGroup([Promise.resolve(done) as unknown as Attempt])).toThrow(
    /got a promise.*write \(\) =>/,
  );
  expect(() => new TrajectoryGroup([done, () => done])).toThrow(/got both/);
  await expect(gatherTrajectoryGroups([new TrajectoryGroup([done])], { model })).rejects.toThrow(/group 0 has none/);
  await expect(gatherTrajectoryGroups([groupOf(() => done)], {} as never)).rejects.toThrow(/must be given model/);
});

test("another model's answers are waited for, and kept with the attempt that asked for them", async () => {
  const model = await world.model();
  const opponent = new Model({
    name: 'opponent',
    project: 'demo',
    inferenceBaseUrl: `${world.engine.url}/v1`,
    inferenceApiKey: world.engine.key,
    inferenceModelName: 'other',
  });
  let isMended = false;
  const attempt: Attempt = async () => {
    const messages = [{ role: 'user' as const, content: 'your move' }];
    const asked = { model: opponent.getInferenceName(), messages };
    const openai = opponent.openai();
    const answers = await Promise.all([0, 1].map(() => openai.chat.completions.create(asked)));
    let streamed = '';
    for await (const { choices } of await openai.chat.completions.create({ ...asked, stream: true }))
      streamed += choices[0]?.delta.content ?? '';
    if (!isMended) throw new Error('later');
    expect(streamed).not.toBe('');
    const said = answers.map(({ choices }) => choices[0]!);
    return new Trajectory({ messagesAndChoices: [...messages, ...said], reward: 1 });
  };
  // More than the official client tries again by itself.
  world.engine.failNext(...Array.from({ length: 6 }, () => ({ status: 503 })));
  await expect(gatherTrajectoryGroups([groupOf([attempt])], { model })).rejects.toThrow('later');
  isMended = true;
  const [group] = await gatherTrajectoryGroups([groupOf([attempt])], { model });
  expect(world.engine.executed.map(({ request }) => request.model)).toEqual(['other', 'other', 'other']);
  const [stored] = (await storedRollouts()).attempts;
  expect(stored!.hostedCalls).toMatchObject(['opponent', 'opponent', 'opponent'].map((name) => ({ model: name })));
  expect(group!.trajectories[0]!.messages().map(({ role }) => role)).toEqual(['user', 'assistant', 'assistant']);
  await expect(model.train([group!])).rejects.toThrow(/no choices/);
});
