/** email-search on other SDKs, in an installation that has these SDKs, played against scripted answers. */
import { beforeAll, expect, inject, test } from 'vitest';
import { ProjectFolder, succeed } from '../stack.ts';

const EXAMPLES = ['ai-sdk', 'langgraph', 'anthropic-sdk'];

const { folder, env } = inject('installation');
const project = new ProjectFolder(folder, { env });

interface Played {
  readonly agent: string;
  readonly script: string;
  readonly reward: number;
  readonly metrics: Readonly<Record<string, number | boolean>>;
  readonly failure: unknown;
  readonly requests: readonly Request[];
}

interface Request {
  readonly messages: readonly { readonly content: string }[];
}

let played: Played[];
beforeAll(async () => {
  const stdout = await succeed(project.run('node', '--import', 'temper-rl/typescript', 'play-examples.ts'));
  played = stdout
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Played);
});
const find = (agent: string, script: string) => played.find((each) => each.agent === agent && each.script === script)!;

test.each(EXAMPLES)('%s: the newest mail is the answer, an older one is wrong, and mistakes are told', (agent) => {
  expect(find(agent, 'right')).toMatchObject({ failure: null, metrics: { correct: true, sourced: true, turns: 3 } });
  expect(find(agent, 'right').reward).toBeCloseTo(1.34);
  expect(find(agent, 'older')).toMatchObject({ failure: null, metrics: { correct: false, found: true, read: false } });
  expect(find(agent, 'lost')).toMatchObject({ failure: null, metrics: { correct: true, turns: 4 } });
  expect(find(agent, 'lost').requests[1]?.messages.at(-1)?.content).toBe('Error: no such id');
  expect(find(agent, 'malformed')).toMatchObject({ failure: null, metrics: { toolCalls: 3 } });
  expect(find(agent, 'endless')).toMatchObject({ failure: null, metrics: { correct: false, answered: false } });
  expect(find(agent, 'endless').requests).toHaveLength(agent === 'langgraph' ? 8 : 5);
});

test.each(['right', 'older', 'lost'])('all of them make the same requests: %s', (script) => {
  const [first, ...others] = EXAMPLES.map((agent) => find(agent, script).requests);
  for (const requests of others) expect(requests).toEqual(first);
});

test('the graph sends an answer back whose source was not read, and begins again', () => {
  const sentBack = find('langgraph', 'guessed');
  expect(sentBack).toMatchObject({ failure: null, metrics: { correct: true, sourced: true, rejected: 1, turns: 4 } });
  expect(sentBack.requests[1]).toEqual(sentBack.requests[0]);
  for (const agent of ['ai-sdk', 'anthropic-sdk'])
    expect(find(agent, 'guessed')).toMatchObject({ metrics: { correct: true, read: false, turns: 1 } });
});
