/** A project whose agent is tried with a model that is served elsewhere. */
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { startFakeEngine, type FakeEngineOptions, type FakeRequest } from '../fake-engine.ts';
import { sdkImports, write } from './agents.ts';
import { runCli, type CliResult } from './run-cli.ts';
import { temporaryFolder } from '../temporary-folder.ts';

export async function makeProject(): Promise<string> {
  const project = temporaryFolder();
  await write(join(project, 'package.json'), '{"type":"module"}');
  return project;
}

/** An agent that asks for its scenario's id in capitals, twice. */
const ASKING = `
  const messages = [{ role: 'user', content: scenario.id }];
  for (const more of [', please', '']) {
    const { choices } = await openai.chat.completions.create({ model, messages: [...messages] });
    messages.push(choices[0].message, { role: 'user', content: 'Again' + more });
  }
  const said = String(messages.at(-2).content);`;

interface Tried extends CliResult {
  /** Requests that the model got. */
  readonly asked: readonly FakeRequest[];
}

export async function writeAsking(project: string, rest: string, { evals = '', asking = ASKING } = {}): Promise<void> {
  const text = `${sdkImports('defineAgent')}
export default defineAgent({
  name: 'echo',
  scenarios: ['a', 'b', 'c', 'd'].map((id) => ({ id })),${evals}
  async rollout({ scenario, openai, model, hosted, random, log }) {${asking}
    ${rest}
  },
});
`;
  await write(join(project, 'agent.ts'), text);
}

export async function runTry(
  project: string,
  args: readonly string[],
  options: FakeEngineOptions = {},
  signal?: AbortSignal,
): Promise<Tried> {
  const engine = await startFakeEngine({
    answer: ({ messages }) => (messages[0]?.content ?? '').toUpperCase(),
    ...options,
  });
  onTestFinished(() => engine.close());
  const env = { OPENAI_BASE_URL: `${engine.url}/v1`, OPENAI_API_KEY: engine.key };
  const line = ['try', 'agent.ts', '--model', 'openai/m', ...args];
  const result = await runCli(project, line, { env, ...(signal && { signal }) });
  return { ...result, asked: engine.executed.map(({ request }) => request) };
}
