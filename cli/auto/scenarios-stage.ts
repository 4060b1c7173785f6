/** Scenarios, made as `temper scenarios` makes them. */
import { join } from 'node:path';
import { scenarioLines } from '../scenarios/lines.ts';
import type { MakePlan } from '../scenarios/make-plan.ts';
import { makeScenarios } from '../scenarios/make-scenarios.ts';
import type { ToolServerFacts } from '../scenarios/origin.ts';
import { checkReplaceable, writeScenarios } from '../scenarios/write-files.ts';
import { MAX_TURNS } from './agent-file.ts';
import { workOf } from './auto-state.ts';
import type { AutoWork } from './auto-work.ts';
import { HELD_OUT_FILE, TRAIN_FILE } from './file-names.ts';

const CONCURRENCY = 8;

export async function makeScenarioFiles(work: AutoWork, server: ToolServerFacts | null): Promise<void> {
  const { folder, store, ledger, state, environment } = work;
  const files = { train: join(folder, TRAIN_FILE), heldOut: join(folder, HELD_OUT_FILE) };
  await checkReplaceable(store, Object.values(files));
  const plan = planOf(work, server);
  const { output, signal } = environment;
  const tell = (line: string): void => output.errorLine(`scenarios: ${line}`);
  const world = { ledger, store, work: workOf(state), folder, engine: null, concurrency: CONCURRENCY, signal, tell };
  const made = await makeScenarios(plan, world);
  await writeScenarios(store, files.train, made.train);
  await writeScenarios(store, files.heldOut, made.heldOut);
  for (const line of scenarioLines(made, { train: TRAIN_FILE, heldOut: HELD_OUT_FILE }, ledger.spent))
    output.line(line);
}

function planOf({ settings, mcp, writer }: AutoWork, server: ToolServerFacts | null): MakePlan {
  const { task, instructions, count, heldOut, attempts } = settings;
  const origin =
    mcp === null || server === null
      ? ({ kind: 'task', task } as const)
      : ({ kind: 'mcp', options: mcp, server } as const);
  const about = origin.kind === 'mcp' ? [`The agent is for this: ${task}`] : [];
  const wishes = [...about, ...(instructions === null ? [] : [instructions])];
  return {
    origin,
    instructions: wishes.length === 0 ? null : wishes.join('\n'),
    count,
    heldOut,
    model: writer,
    tryWith: writer,
    attempts,
    maxTurns: MAX_TURNS,
    seed: 1,
  };
}
