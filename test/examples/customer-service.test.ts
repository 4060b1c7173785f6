/** A service desk of a domain that is data: what its tools do, how a conversation is graded, and each edition played. */
import { describe, expect, test } from 'vitest';
import agent from '../../examples/customer-service/agent.ts';
import airlineAgent from '../../examples/customer-service/airline-agent.ts';
import { Database } from '../../examples/customer-service/database.ts';
import { Desk } from '../../examples/customer-service/desk.ts';
import type { Domain } from '../../examples/customer-service/domain.ts';
import { airline } from '../../examples/customer-service/domains/airline.ts';
import { retail } from '../../examples/customer-service/domains/retail.ts';
import { smallAirline, smallRetail } from '../../examples/customer-service/domains/small.ts';
import { isHeldOut } from '../../examples/customer-service/draw.ts';
import { grade } from '../../examples/customer-service/grade.ts';
import scriptedAgent from '../../examples/customer-service/scripted-agent.ts';
import smallAgent from '../../examples/customer-service/small-agent.ts';
import smallAirlineAgent from '../../examples/customer-service/small-airline-agent.ts';
import {
  drawTask,
  examScenarios,
  trainingScenarios,
  type Scenario,
  type Task,
} from '../../examples/customer-service/task.ts';
import { playAgent } from '../../sdk/testing/index.ts';
import type { CallRequest } from '../../store/records/trajectories.ts';

const DOMAINS = [retail, airline, smallRetail, smallAirline];
const ROUNDS = 5;

function tasksOf(domain: Domain): Task[] {
  const count = ROUNDS * domain.situations.length;
  return [...trainingScenarios(domain, count), ...examScenarios(domain, count)].map((each) => drawTask(domain, each));
}

/** The first training scenario of a situation. */
function scenarioOf(domain: Domain, name: string): Scenario {
  return trainingScenarios(domain, domain.situations.length).find(({ id }) => id.startsWith(`${name}-`))!;
}

function taskOf(domain: Domain, name: string): Task {
  return drawTask(domain, scenarioOf(domain, name));
}

describe.each(DOMAINS.map((domain) => [domain.name, domain] as const))('the domain %s', (_, domain) => {
  test('is data: JSON says all of it', () => {
    const copy = JSON.parse(JSON.stringify(domain)) as Domain;
    expect(copy).toEqual(domain);
    const [scenario] = examScenarios(domain, 1);
    expect(drawTask(copy, scenario!).expected).toBe(drawTask(domain, scenario!).expected);
  });

  test('has customers whom its expected calls and statements satisfy, and doing nothing does not', () => {
    for (const task of tasksOf(domain)) {
      const { situation } = task;
      const idle = grade(task, []);
      expect({ situation, isIdle: idle.state && idle.statements }).toEqual({ situation, isIdle: false });
      for (const { tool, arguments: args } of task.calls) task.desk.call(tool, args);
      const said = [`It costs ${task.statements.join(' and ')}.`];
      expect({ situation, ...grade(task, said) }).toEqual({ situation, state: true, statements: true });
    }
  });

  test('is drawn the same each time, and no held-out id is trained', () => {
    const [scenario] = trainingScenarios(domain, 1);
    expect(drawTask(domain, scenario!).desk.digest()).toBe(drawTask(domain, scenario!).desk.digest());
    const heldOut = ([trainingScenarios, examScenarios] as const).map((scenarios) =>
      scenarios(domain, ROUNDS * domain.situations.length).flatMap((each) =>
        Object.values(drawTask(domain, each).names).map((named) =>
          isHeldOut(String((named as { row: object }).row['id' as never])),
        ),
      ),
    );
    expect(heldOut.map((each) => [...new Set(each)])).toEqual([[false], [true]]);
  });
});

const COUNTER: Domain = {
  name: 'counter',
  policy: '',
  tables: {
    clients: { rows: 0, id: 'C#', columns: { name: { oneOf: ['Ada'] } } },
    boxes: {
      rows: 0,
      id: 'B#',
      columns: { client: { ref: 'clients' }, size: { oneOf: [1] }, state: { oneOf: ['shut'] } },
    },
    notes: { rows: 0, id: 'N#', columns: { box: { ref: 'boxes' } } },
  },
  tools: {
    find: { description: '', arguments: { name: { text: '' } }, find: 'clients' },
    show: {
      description: '',
      arguments: { client: { row: 'clients' } },
      show: 'client',
      with: { table: 'boxes', by: 'client' },
    },
    open: {
      description: '',
      arguments: { box: { row: 'boxes' }, other: { row: 'boxes' } },
      checks: [
        { at: 'box.state', is: ['shut', 'locked'], not: ['locked'] },
        { at: 'box.client.name', not: ['Ben'] },
        { at: 'other', differs: 'box' },
        { at: 'other.client', equals: 'box.client' },
        { at: 'box.size', atLeast: 2, atMost: 8 },
      ],
      effects: [
        { set: 'box.state', to: 'open, like {other}' },
        { add: -2, to: 'box.size' },
        { set: 'other.client.name', to: '{box.client.name}!' },
        { insert: 'notes', row: { box: '{box}' } },
      ],
    },
  },
  situations: [],
};

function openCounter() {
  const database = new Database(COUNTER.tables);
  database.insert('clients', { id: 'C1', name: 'Ada' });
  database.insert('clients', { id: 'C2', name: 'Ben' });
  database.insert('boxes', { id: 'B1', client: 'C1', size: 4, state: 'shut' });
  database.insert('boxes', { id: 'B2', client: 'C1', size: 9, state: 'shut' });
  database.insert('boxes', { id: 'B3', client: 'C2', size: 4, state: 'shut' });
  database.insert('boxes', { id: 'B4', client: 'C1', size: 4, state: 'locked' });
  database.insert('boxes', { id: 'B5', client: 'C1', size: 4, state: 'open' });
  database.insert('boxes', { id: 'B6', client: 'C1', size: 1, state: 'shut' });
  return { database, desk: new Desk(COUNTER, database) };
}

describe('a desk', () => {
  test('finds rows by their columns, whatever the case, and shows a row with those that refer to it', () => {
    const { desk } = openCounter();
    expect(desk.call('find', { name: ' ADA ' })).toEqual([{ id: 'C1', name: 'Ada' }]);
    expect(desk.call('find', { name: 'Ad' })).toEqual([]);
    expect(desk.call('show', { client: 'C2' })).toEqual({
      id: 'C2',
      name: 'Ben',
      boxes: [{ id: 'B3', size: 4, state: 'shut' }],
    });
  });

  test('changes what a tool says, along references', () => {
    const { desk, database } = openCounter();
    expect(desk.call('open', { box: 'B1', other: 'B2' })).toBe('done');
    expect(database.get('boxes', 'B1')!.row).toEqual({ id: 'B1', client: 'C1', size: 2, state: 'open, like B2' });
    expect(database.get('clients', 'C1')!.row['name']).toBe('Ada!');
    expect(database.rows('notes')).toEqual([{ id: 'N1', box: 'B1' }]);
  });

  test.each([
    [{ box: 'B7', other: 'B1' }, 'there is no box B7'],
    [{ box: 'B1' }, 'other is missing'],
    [{ box: 'B5', other: 'B1' }, 'box.state must be shut or locked, it is open'],
    [{ box: 'B4', other: 'B1' }, 'box.state must not be locked'],
    [{ box: 'B3', other: 'B1' }, 'box.client.name must not be Ben'],
    [{ box: 'B1', other: 'B1' }, 'other must not be that of box'],
    [{ box: 'B1', other: 'B3' }, 'other.client must be that of box.client'],
    [{ box: 'B6', other: 'B1' }, 'box.size must be at least 2, it is 1'],
    [{ box: 'B2', other: 'B1' }, 'box.size must be at most 8, it is 9'],
  ])('refuses %j, and changes nothing', (args, reason) => {
    const { desk } = openCounter();
    const before = desk.digest();
    expect(() => desk.call('open', args as Record<string, string>)).toThrow(reason);
    expect(desk.digest()).toBe(before);
  });

  test('has the tools of its domain alone, and says what its data names in vain', () => {
    const { desk, database } = openCounter();
    expect(() => desk.call('close', {})).toThrow('there is no tool close');
    expect(() => database.read('box.lid', { box: database.get('boxes', 'B1')! })).toThrow(
      'the domain names box.lid, which does not exist',
    );
  });
});

test('a hash says whether two databases have the same rows, in whatever order they were written', () => {
  const [one, other] = [new Database(COUNTER.tables), new Database(COUNTER.tables)];
  one.insert('clients', { id: 'C1', name: 'Ada' });
  one.insert('clients', { id: 'C2', name: 'Ben' });
  other.insert('clients', { name: 'Ben', id: 'C2' });
  other.insert('clients', { id: 'C1', name: 'Ada' });
  expect(other.digest()).toBe(one.digest());
  expect(one.copy().digest()).toBe(one.digest());
  other.get('clients', 'C2')!.row['name'] = 'Bea';
  expect(other.digest()).not.toBe(one.digest());
});

test.each([
  ['48', 'You get 48 euros.', true],
  ['48', 'That makes €48.', true],
  ['48', '48.00 is paid back', true],
  ['1450', 'It costs 1,450 euros.', true],
  ['48', 'You get 148 euros.', false],
  ['48', 'You get 48.50 euros.', false],
  ['48', 'You get 3.48 euros.', false],
  ['48', 'Your line L48 is returned.', false],
  ['no', 'I know.', false],
  ['no', 'No, that is not possible.', true],
])('%j is said by %j: %j', (statement, said, isSaid) => {
  const task = { ...taskOf(retail, 'price'), statements: [statement] };
  expect(grade(task, ['Hello.', said])).toEqual({ state: true, statements: isSaid });
});

const CALL = (name: string, args: object) => ({ toolCalls: [{ name, arguments: args }] });

describe('the full edition', () => {
  const EDITIONS = [
    [agent, retail, 'return-recent', 'find_user_by_email'],
    [airlineAgent, airline, 'change-flight', 'find_user'],
  ] as const;

  test.each(EDITIONS)('%# serves a customer whom a model plays', async (edition, domain, situation, find) => {
    const task = taskOf(domain, situation);
    const email = /\S+@example\.org/.exec(task.wants)![0].replace(/\.$/, '');
    const [call] = task.calls;
    const instructions: unknown[] = [];
    const greet = ({ messages }: CallRequest) => {
      instructions.push(...messages.map(({ content }) => content));
      return 'Hello.';
    };
    const played = await playAgent(edition, {
      scenario: scenarioOf(domain, situation),
      answers: [
        'Who are you?',
        CALL(find, { email }),
        `The price is ${task.statements[0]!} euros. Shall I?`,
        CALL(call!.tool, call!.arguments),
        'Done.',
      ],
      hosted: { 'openai/gpt-5-mini': [greet, `I am ${email}.`, 'Yes.', '[hang up]'] },
    });
    expect(played).toMatchObject({ failure: null, reward: 1, metrics: { state: true, statements: true, turns: 5 } });
    expect(instructions).toEqual([expect.stringContaining(task.wants), 'Hello, how can I help you?']);
    const asked = played.calls;
    expect(asked.map(({ role }) => role)).toEqual(asked.map(() => 'agent'));
    expect(asked[0]!.request.messages).toEqual([
      { role: 'system', content: domain.policy },
      { role: 'user', content: 'Hello.' },
    ]);
    expect(JSON.stringify(asked.at(-1)!.request)).not.toContain(task.wants);
  });

  test('a wrong change, or an unsaid price, earns nothing', async () => {
    const scenario = scenarioOf(retail, 'return-recent');
    const task = taskOf(retail, 'return-recent');
    const [call] = task.calls;
    const play = (answers: Parameters<typeof playAgent>[1]['answers']) =>
      playAgent(scriptedAgent, { scenario, answers });
    const right = [CALL(call!.tool, call!.arguments), `You get ${task.statements[0]!} euros.`, 'Yes.', 'Bye.'];
    expect(await play(right)).toMatchObject({ reward: 1 });
    const unsaid = await play([right[0]!, 'Done.', 'Yes.', 'Bye.']);
    expect(unsaid).toMatchObject({ reward: 0, metrics: { state: true, statements: false } });
    const user = /C\d{4}/.exec(JSON.stringify(task.names))![0];
    const transferred = await play([CALL('transfer_to_human', { user, summary: 'a return' })]);
    expect(transferred).toMatchObject({ reward: 0, metrics: { state: false, turns: 1 } });
  });

  test('a call that the rules forbid changes nothing, and the model is told why', async () => {
    const task = taskOf(retail, 'cancel-shipped');
    const order = /O\d{5}/.exec(task.wants)![0];
    const played = await playAgent(scriptedAgent, {
      scenario: scenarioOf(retail, 'cancel-shipped'),
      answers: [
        CALL('cancel_order', { order, reason: 'no longer needed' }),
        CALL('cancel_order', { order, reason: 'it is urgent' }),
        CALL('transfer_to_human', task.calls[0]!.arguments),
      ],
    });
    expect(played).toMatchObject({ reward: 1, metrics: { calls: 3, failed: 2 } });
    const told = played.calls.at(-1)!.request.messages.filter(({ role }) => role === 'tool');
    expect(told.map(({ content }) => content)).toEqual([
      'Error: order.status must be pending, it is shipped',
      expect.stringMatching(/^Error: reason: /),
    ]);
  });

  test('a conversation that never ends is stopped', async () => {
    const played = await playAgent(agent, {
      scenario: scenarioOf(retail, 'price'),
      answers: () => 'Please hold the line.',
      hosted: { 'openai/gpt-5-mini': () => 'Hello?' },
    });
    expect(played).toMatchObject({ failure: null, reward: 0, metrics: { turns: 24 } });
  });
});

describe('the small edition', () => {
  const play = (situation: string, keys: string[]) =>
    playAgent(smallAgent, { scenario: scenarioOf(smallRetail, situation), answers: keys });

  test.each([
    ['back-open', ['1', '2'], { reward: 1, metrics: { resolved: true, looked: true, turns: 2 } }],
    ['back-here', ['1', '3'], { reward: 1, metrics: { resolved: true } }],
    ['back-sent', ['1', '6'], { reward: 1, metrics: { resolved: true } }],
    ['swap-sent', ['1', '7'], { reward: 1, metrics: { resolved: true } }],
    ['back-open', ['2'], { reward: 0, metrics: { resolved: false, looked: false, turns: 1 } }],
    ['swap-sent', ['7'], { reward: 0, metrics: { resolved: false, looked: false } }],
    ['swap-sent', ['1', '4'], { reward: 0.2, metrics: { resolved: false, looked: true } }],
    ['back-open', ['8'], { reward: 0, metrics: { illegal: true } }],
    ['back-open', ['1', '12'], { reward: 0, metrics: { illegal: true } }],
    ['back-open', ['1', '1'], { reward: 0, metrics: { resolved: false, illegal: true, turns: 2 } }],
  ])('%s with the keys %j', async (situation, keys, expected) => {
    const played = await play(situation, keys);
    expect(played).toMatchObject({ failure: null, ...expected });
    expect(played.calls).toHaveLength(keys.length);
  });

  test('shows in each turn all there is to know', async () => {
    const { calls } = await play('move-open', ['1', '5']);
    const asked = calls.flatMap(({ request }) => request.messages.map(({ content }) => content));
    expect(asked).toEqual(['move ? 1234567', expect.stringMatching(/^move [A-Z]{2} open 234567$/)]);
  });

  test('of the airline has other rules by data alone', async () => {
    const scenario = scenarioOf(smallAirline, 'bags-lite');
    const played = await playAgent(smallAirlineAgent, { scenario, answers: ['1', '4'] });
    expect(played).toMatchObject({ failure: null, reward: 1 });
  });
});
