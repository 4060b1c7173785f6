/** A service desk of a domain that is data: how a conversation is graded, and each edition played. */
import { describe, expect, test } from 'vitest';
import agent from '../../examples/customer-service/agent.ts';
import airlineAgent from '../../examples/customer-service/airline-agent.ts';
import type { Domain } from '../../examples/customer-service/domain.ts';
import { airline } from '../../examples/customer-service/domains/airline.ts';
import { retail } from '../../examples/customer-service/domains/retail.ts';
import { smallAirline, smallRetail } from '../../examples/customer-service/domains/small.ts';
import scriptedAgent from '../../examples/customer-service/scripted-agent.ts';
import smallAgent from '../../examples/customer-service/small-agent.ts';
import smallAirlineAgent from '../../examples/customer-service/small-airline-agent.ts';
import { drawTask, trainingScenarios, type Scenario } from '../../examples/customer-service/task.ts';
import { playAgent } from '../../sdk/testing/index.ts';
import type { CallRequest } from '../../store/records/trajectories.ts';

/** The first training scenario of a situation. */
function scenarioOf(domain: Domain, name: string): Scenario {
  return trainingScenarios(domain, domain.situations.length).find(({ id }) => id.startsWith(`${name}-`))!;
}

const taskOf = (domain: Domain, name: string) => drawTask(domain, scenarioOf(domain, name));
const call = (name: string, args: object) => ({ toolCalls: [{ name, arguments: args }] });

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
});

describe('the small edition', () => {
  test.each([
    [smallAgent, smallRetail, 'back-open', ['1', '2'], { reward: 1, metrics: { resolved: true, looked: true } }],
    [smallAgent, smallRetail, 'swap-sent', ['1', '4'], { reward: 0.2, metrics: { resolved: false, looked: true } }],
    [smallAgent, smallRetail, 'back-open', ['8'], { reward: 0, metrics: { illegal: true } }],
    [smallAirlineAgent, smallAirline, 'bags-lite', ['1', '4'], { reward: 1 }],
  ])('%# is played with keys', async (edition, domain, situation, keys, expected) => {
    const played = await playAgent(edition, { scenario: scenarioOf(domain, situation), answers: keys });
    expect(played).toMatchObject({ failure: null, ...expected });
    expect(played.calls).toHaveLength(keys.length);
  });
});
