/** A service desk of a domain that is data: how a conversation is graded, and each edition played. */
import { describe, expect, test } from 'vitest';
import agent from '../../examples/customer-service/agent.ts';
import airlineAgent from '../../examples/customer-service/airline-agent.ts';
import type { Domain } from '../../examples/customer-service/domain.ts';
import { airline } from '../../examples/customer-service/domains/airline.ts';
import { retail } from '../../examples/customer-service/domains/retail.ts';
import { smallAirline, smallRetail } from '../../examples/customer-service/domains/small.ts';
import { isHeldOut } from '../../examples/customer-service/draw.ts';
import { grade } from '../../examples/customer-service/grade.ts';
import scriptedAgent from '../../examples/customer-service/scripted-agent.ts';
import smallAgent from '../../examples/customer-service/small-agent.ts';
import smallAirlineAgent from '../../examples/customer-service/small-airline-agent.ts';
import { drawTask, examScenarios, trainingScenarios, type Scenario } from '../../examples/customer-service/task.ts';
import { playAgent } from '../../sdk/testing/index.ts';
import type { CallRequest } from '../../store/records/trajectories.ts';

const ROUNDS = 3;

/** The first training scenario of a situation. */
function scenarioOf(domain: Domain, name: string): Scenario {
  return trainingScenarios(domain, domain.situations.length).find(({ id }) => id.startsWith(`${name}-`))!;
}

const taskOf = (domain: Domain, name: string) => drawTask(domain, scenarioOf(domain, name));
const call = (name: string, args: object) => ({ toolCalls: [{ name, arguments: args }] });

describe.each([retail, airline, smallRetail, smallAirline])('the domain $name', (domain) => {
  const [training, exam] = [trainingScenarios, examScenarios].map((scenarios) =>
    scenarios(domain, ROUNDS * domain.situations.length),
  );

  test('is data, from which one seed draws the same', () => {
    const copy = JSON.parse(JSON.stringify(domain)) as Domain;
    expect(copy).toEqual(domain);
    expect(drawTask(copy, exam![0]!).desk.digest()).toBe(drawTask(domain, exam![0]!).desk.digest());
  });

  test('has customers whom its expected calls and statements satisfy, and doing nothing does not', () => {
    for (const scenario of [...training!, ...exam!]) {
      const task = drawTask(domain, scenario);
      const { situation } = task;
      const idle = grade(task, []);
      expect({ situation, isIdle: idle.state && idle.statements }).toEqual({ situation, isIdle: false });
      for (const { tool, arguments: args } of task.calls) task.desk.call(tool, args);
      const said = [`It costs ${task.statements.join(' and ')}.`];
      expect({ situation, ...grade(task, said) }).toEqual({ situation, state: true, statements: true });
    }
  });

  test('trains no id that is held out', () => {
    const heldOut = [training!, exam!].map((scenarios) =>
      scenarios.flatMap((each) =>
        Object.values(drawTask(domain, each).names).map((named) =>
          isHeldOut(String((named as { row: object }).row['id' as never])),
        ),
      ),
    );
    expect(heldOut.map((each) => [...new Set(each)])).toEqual([[false], [true]]);
  });
});

describe('the full edition', () => {
  test.each([
    [agent, retail, 'return-recent', 'find_user_by_email'],
    [airlineAgent, airline, 'change-flight', 'find_user'],
  ] as const)('%# serves a customer whom a model plays', async (edition, domain, situation, find) => {
    const task = taskOf(domain, situation);
    const email = /\S+@example\.org/.exec(task.wants)![0].replace(/\.$/, '');
    const [right] = task.calls;
    const instructions: unknown[] = [];
    const greet = ({ messages }: CallRequest) => {
      instructions.push(...messages.map(({ content }) => content));
      return 'Hello.';
    };
    const played = await playAgent(edition, {
      scenario: scenarioOf(domain, situation),
      answers: [
        'Who are you?',
        call(find, { email }),
        `The price is ${task.statements[0]!} euros. Shall I?`,
        call(right!.tool, right!.arguments),
        'Done.',
      ],
      hosted: { 'openai/gpt-5-mini': [greet, `I am ${email}.`, 'Yes.', '[hang up]'] },
    });
    expect(played).toMatchObject({ failure: null, reward: 1, metrics: { state: true, statements: true, turns: 5 } });
    expect(instructions[0]).toContain(task.wants);
    expect(played.calls[0]!.request.messages[0]).toEqual({ role: 'system', content: domain.policy });
    expect(JSON.stringify(played.calls.at(-1)!.request)).not.toContain(task.wants);
  });

  test('a price that is not said, or a needless transfer, earns nothing', async () => {
    const scenario = scenarioOf(retail, 'return-recent');
    const task = taskOf(retail, 'return-recent');
    const right = call(task.calls[0]!.tool, task.calls[0]!.arguments);
    const unsaid = await playAgent(scriptedAgent, { scenario, answers: [right, 'Done.', 'Yes.', 'Bye.'] });
    expect(unsaid).toMatchObject({ reward: 0, metrics: { state: true, statements: false } });
    const user = /C\d{4}/.exec(JSON.stringify(task.names))![0];
    const transfer = call('transfer_to_human', { user, summary: 'a return' });
    const transferred = await playAgent(scriptedAgent, { scenario, answers: [transfer] });
    expect(transferred).toMatchObject({ reward: 0, metrics: { state: false, turns: 1 } });
  });

  test('a call that the rules forbid changes nothing, and the model is told why', async () => {
    const task = taskOf(retail, 'cancel-shipped');
    const order = /O\d{5}/.exec(task.wants)![0];
    const played = await playAgent(scriptedAgent, {
      scenario: scenarioOf(retail, 'cancel-shipped'),
      answers: [
        call('cancel_order', { order, reason: 'no longer needed' }),
        call('cancel_order', { order, reason: 'it is urgent' }),
        call('transfer_to_human', task.calls[0]!.arguments),
      ],
    });
    expect(played).toMatchObject({ reward: 1, metrics: { calls: 3, failed: 2 } });
    const told = played.calls.at(-1)!.request.messages.filter(({ role }) => role === 'tool');
    expect(told.map(({ content }) => content)).toEqual([
      'Error: order.status must be pending, it is shipped',
      expect.stringMatching(/^Error: reason: /),
    ]);
  });
});

describe('the small edition', () => {
  test.each([
    [smallAgent, smallRetail, 'back-open', ['1', '2'], { reward: 1, metrics: { resolved: true, looked: true } }],
    [smallAgent, smallRetail, 'swap-sent', ['1', '7'], { reward: 1, metrics: { resolved: true } }],
    [smallAgent, smallRetail, 'swap-sent', ['1', '4'], { reward: 0.2, metrics: { resolved: false, looked: true } }],
    [smallAgent, smallRetail, 'back-open', ['2'], { reward: 0, metrics: { resolved: false, looked: false } }],
    [smallAgent, smallRetail, 'back-open', ['8'], { reward: 0, metrics: { illegal: true } }],
    [smallAirlineAgent, smallAirline, 'bags-lite', ['1', '4'], { reward: 1 }],
  ])('%# is played with keys', async (edition, domain, situation, keys, expected) => {
    const played = await playAgent(edition, { scenario: scenarioOf(domain, situation), answers: keys });
    expect(played).toMatchObject({ failure: null, ...expected });
    expect(played.calls).toHaveLength(keys.length);
  });

  test('shows in each turn all there is to know', async () => {
    const played = await playAgent(smallAgent, { scenario: scenarioOf(smallRetail, 'move-open'), answers: ['1', '5'] });
    const asked = played.calls.flatMap(({ request }) => request.messages.map(({ content }) => content));
    expect(asked).toEqual(['move ? 1234567', expect.stringMatching(/^move [A-Z]{2} open 234567$/)]);
  });
});
