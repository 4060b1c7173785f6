/** Action `evaluate`: plays held-out scenarios with a checkpoint, as `temper eval` does, in a process of its own. */
import { spawn } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { withoutDoorKeys } from '../../../core/names/door-keys.ts';
import { badConfig, TemperError } from '../../../core/contract/failures.ts';
import { plural } from '../../../core/reports/format.ts';
import type { Place, Plan } from '../../../operations/operation.ts';
import { requireFound } from '../../../operations/steer-run.ts';
import { shellText } from '../../../operations/words.ts';
import { findTrainedPolicy } from '../../../store/records/runs/find-policy.ts';
import { readPrepared } from '../../../store/records/runs/run-reader.ts';
import { STORE_VARIABLE } from '../../../workers/config/config.ts';
import { openProjectStore } from '../../../workers/config/project-store.ts';
import { splitLines, whenEnded } from '../../../workers/process/command.ts';
import { STATE_FOLDER } from '../../../workers/project/folders.ts';
import { evalLines, type EvalSummary } from '../../eval/summarise.ts';
import { findAgentOf } from '../agents/find-agent.ts';

const CLI = fileURLToPath(new URL('../../temper.js', import.meta.url));
const LAST_LINES = 3;

interface EvaluateInput {
  readonly run: string;
  readonly step: number;
  readonly agentFile: string | null;
}

interface PlannedEvaluation extends Plan {
  readonly words: readonly string[];
  readonly page: string;
}

export async function planEvaluation(
  place: Place,
  { run, step, agentFile }: EvaluateInput,
): Promise<PlannedEvaluation> {
  const { project } = place;
  const store = await place.store();
  await requireFound(place, run);
  const { name, file, config } = await findTrainedPolicy(store, { run, branch: null, step });
  const agent = await findAgentOf(file, project, agentFile);
  const prepared = await readPrepared(store, run);
  const scenarios = Math.min(config.evalScenarios, prepared?.evalScenarios ?? 0);
  if (scenarios === 0)
    throw badConfig(
      `${run} must have held-out scenarios to be evaluated, but it has none; run temper eval with an agent that has some`,
    );
  const page = join(project, STATE_FOLDER, 'reports', `eval-${name.replaceAll(/[^\w.@~-]/g, '-')}.html`);
  const words = ['eval', agent.path, '--model', name];
  const changed = agent.isUnchanged ? '' : ` Its file has changed since the run was started: ${agent.path}.`;
  return {
    says: `${name} plays ${plural(scenarios, 'held-out scenario')} of ${run}, each once, with the agent ${config.agent}.${changed} The engine of this project's local stack answers; one is started if none runs, and runs on the same GPU worker may be slowed down. Nothing is stored in the run: the result is a page, ${relative(project, page)}.`,
    command: shellText(['temper', ...words]),
    words: [...words, '--out', page],
    page,
  };
}

export async function evaluate(place: Place, input: EvaluateInput) {
  const { words, page } = await planEvaluation(place, input);
  await mkdir(dirname(page), { recursive: true });
  const summary = await runEval(words, place);
  return { summary, lines: evalLines(summary), page: relative(place.project, page) };
}

async function runEval(
  words: readonly string[],
  { project, env, store: openStore, signal }: Place,
): Promise<EvalSummary> {
  const own = await openProjectStore(project, env);
  const store = await openStore();
  const storeVariable = own.uri === store.uri ? {} : { [STORE_VARIABLE]: store.uri };
  const child = spawn(process.execPath, [CLI, ...words, '--json'], {
    cwd: project,
    env: { ...withoutDoorKeys(env), ...storeVariable },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const stop = (): void => void child.kill('SIGINT');
  signal.addEventListener('abort', stop, { once: true });
  const last: string[] = [];
  let json = '';
  splitLines(child.stdout, (line) => void (json += line));
  splitLines(child.stderr, (line) => {
    last.push(line);
    if (last.length > LAST_LINES) last.shift();
  });
  const ended = await new Promise<string>((resolve) => whenEnded(child, resolve));
  signal.removeEventListener('abort', stop);
  if (json === '')
    throw new TemperError('EngineFailed', `temper eval ended with ${ended}: ${last.join(' | ') || 'no message'}`);
  return JSON.parse(json) as EvalSummary;
}
