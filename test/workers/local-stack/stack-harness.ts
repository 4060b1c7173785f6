/** Local stacks for tests: stand-ins for what a stack starts, and processes that hold a stack to be killed. */
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type * as client from '../../../workers/local-stack/client.ts';
import type { LocalStackOptions } from '../../../workers/local-stack/options.ts';
import type { StackEvent } from '../../../workers/events.ts';
import { processStartTime } from '../../../workers/process/processes.ts';
import { readStackFile, type StackFile } from '../../../workers/local-stack/protocol/stack-file.ts';
import { codeFile } from '../../compiled.ts';
import { holdStack as hold, type Holder } from '../../stack.ts';
import { until as untilTrue } from '../../until.ts';

/** As compiled, if it is: then the processes that it starts are, too. */
const { openLocalStack } = (await import(codeFile('workers/local-stack/client.ts'))) as typeof client;

const standIn = (name: string) => fileURLToPath(new URL(`stand-ins/${name}`, import.meta.url));

/** A real Temporal server, and stand-ins for the workers. */
export const WITH_SERVER = {
  gpuWorker: [process.execPath, standIn('gpu-worker.mjs')],
  worker: [process.execPath, standIn('worker.mjs')],
};

export const STAND_INS = { ...WITH_SERVER, temporal: [process.execPath, standIn('temporal.mjs')] };

/** Whatever memory this machine has free. A folder with a question mark has no configuration in TypeScript. */
function withStandby(project: string): string {
  const file = join(project, 'temporal.config.ts');
  if (!existsSync(file) && !project.includes('?'))
    writeFileSync(file, 'export default { localStack: { standby: true } };\n');
  return project;
}

/** In this process; events are kept. */
export async function openStack(
  project: string,
  options: Partial<LocalStackOptions> = {},
): Promise<{ stack: client.LocalStack; events: StackEvent[] }> {
  const events: StackEvent[] = [];
  const onEvent = (event: StackEvent) => void events.push(event);
  const stack = await openLocalStack({
    project: withStandby(project),
    agentFile: null,
    models: {},
    commands: STAND_INS,
    onEvent,
    ...options,
  });
  return { stack, events };
}

/** In a process of its own, as a command line would. */
export const holdStack = (project: string): Holder =>
  hold({ project: withStandby(project), agentFile: null, commands: STAND_INS });

export function stackFile(project: string): StackFile {
  const stack = readStackFile(join(project, '.temper', 'stack.json'));
  if (stack === null) throw new Error('there is no stack.json');
  return stack;
}

export function childPid(project: string, name: string): number {
  const mark = stackFile(project).children.find((child) => child.name === name);
  if (mark === undefined) throw new Error(`${name} does not run`);
  return mark.pid;
}

export const isRunning = (pid: number): boolean => processStartTime(pid) !== null;

/** What throws is not so yet. */
export const until = (what: string, condition: () => boolean, limitMs = 100_000): Promise<void> =>
  untilTrue(what, () => holds(condition), limitMs, 30);

function holds(condition: () => boolean): boolean {
  try {
    return condition();
  } catch {
    return false;
  }
}
