/** The full edition, for whatever domain: an agent with real tool calls that talks to a customer. */
import { tool, toolLoop, type RoleContext, type Tool } from 'temper-rl';
import { z } from 'zod';
import type { Customer } from './customer.ts';
import type { Desk } from './desk.ts';
import type { Argument, Domain } from './domain.ts';
import { grade } from './grade.ts';
import type { Task } from './task.ts';

/** Answers of the agent in all, those with calls included. */
const MAX_TURNS = 24;
const MAX_TOKENS_PER_TURN = 512;

type Model = Pick<RoleContext, 'openai' | 'model'>;

export async function serve(domain: Domain, task: Task, agent: Model, customer: Customer) {
  const tools = toolsOf(domain, task.desk);
  const said: string[] = [];
  let messages: Parameters<typeof toolLoop>[1]['messages'] = [{ role: 'system', content: domain.policy }];
  let [turns, calls, failed] = [0, 0, 0];
  for (;;) {
    const asked = await customer.say(said.at(-1) ?? null);
    if (asked === null || turns >= MAX_TURNS) break;
    const played = await toolLoop(agent, {
      messages: [...messages, { role: 'user', content: asked }],
      tools,
      maxTurns: MAX_TURNS - turns,
      maxTokensPerTurn: MAX_TOKENS_PER_TURN,
    });
    messages = played.messages;
    turns += played.turns;
    calls += played.calls.length;
    failed += played.calls.filter((call) => call.failed).length;
    if (played.answer === null) break;
    said.push(played.answer);
  }
  const { state, statements } = grade(task, said);
  return { reward: state && statements ? 1 : 0, metrics: { state, statements, turns, calls, failed } };
}

function toolsOf({ tools }: Domain, desk: Desk): Tool[] {
  return Object.entries(tools).map(([name, { description, arguments: args, ends = false }]) =>
    tool({
      name,
      description,
      parameters: z.object(Object.fromEntries(Object.entries(args).map(([key, each]) => [key, schemaOf(each)]))),
      run: (values) => desk.call(name, values),
      ends,
    }),
  );
}

function schemaOf(argument: Argument) {
  if ('oneOf' in argument) return z.enum(argument.oneOf);
  if ('between' in argument) return z.int().min(argument.between[0]).max(argument.between[1]);
  return z.string().describe('row' in argument ? `an id of ${argument.row}` : argument.text);
}
