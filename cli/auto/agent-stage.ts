/** The agent: a system prompt and a rubric of the hosted model, in a file of Temper's template. */
import { join } from 'node:path';
import type { ToolServerFacts } from '../scenarios/origin.ts';
import { agentFile, type JudgePart } from './agent-file.ts';
import { ask, writeOwn, type AutoWork, type HostedPlayer } from './auto-work.ts';
import { readExamples, textOf } from './example-scenarios.ts';
import { AGENT_FILE, TRAIN_FILE } from './file-names.ts';
import { agentQuestion } from './questions.ts';

/** `server`: null for an agent that answers once. */
export async function makeAgent(work: AutoWork, server: ToolServerFacts | null): Promise<void> {
  const { folder, name, settings, mcp } = work;
  const { task } = settings;
  const examples = await readExamples(join(folder, TRAIN_FILE));
  const facts = { task, examples: examples.map(textOf), tools: server?.tools ?? null };
  const { systemPrompt, rubric } = await ask(work, agentQuestion(facts));
  const judge = judgePart(work.judge);
  const part = mcp === null || server === null ? null : { options: mcp, isolate: !server.isReadOnly };
  await writeOwn(work, AGENT_FILE, agentFile({ name, task, systemPrompt, rubric, judge, server: part }));
  work.environment.output.line(`agent: ${AGENT_FILE} written`);
}

function judgePart({ name, hosted, price }: HostedPlayer): JudgePart {
  const { baseUrl, model, keyVariable } = hosted;
  return { judge: /^https?:/.test(name) ? { baseUrl, model, keyVariable } : name, price };
}
