/** Settings of `temper auto`: flags, or what `auto.json` of the folder recorded of an earlier command. */
import { z } from 'zod';
import { canonicalJson } from '../../core/hashes.ts';
import { showValue } from '../../core/show-value.ts';
import { UsageError } from '../command-line/errors.ts';
import { defaultHeldOut } from '../scenarios/plan-scenarios.ts';
import type { AutoContext } from './command.ts';
import { STATE_FILE } from './file-names.ts';
import type { Stage } from './stages.ts';

export const AutoSettings = z.strictObject({
  task: z.string(),
  /** Command or URL of an MCP server; null for an agent that answers once. */
  mcp: z.string().nullable(),
  /** Tools of the server; null: all, and its resources. */
  tools: z.array(z.string()).nullable(),
  mcpEnv: z.array(z.string()),
  instructions: z.string().nullable(),
  count: z.number().int(),
  heldOut: z.number().int(),
  attempts: z.number().int(),
  model: z.string(),
  judge: z.string(),
  keyEnv: z.string().nullable(),
  /** `MODEL=IN/OUT`, as a person wrote them. */
  prices: z.array(z.string()),
  maxCostUsd: z.number().nullable(),
});

export type AutoSettings = z.output<typeof AutoSettings>;

/** Flag of each setting that a stage is made of: once that stage is done, another value would contradict its files. */
const FIXED_BY: Readonly<Partial<Record<keyof AutoSettings, { readonly flag: string; readonly stage: Stage }>>> = {
  task: { flag: 'TASK', stage: 'scenarios' },
  mcp: { flag: '--mcp', stage: 'scenarios' },
  tools: { flag: '--tools', stage: 'scenarios' },
  mcpEnv: { flag: '--mcp-env', stage: 'scenarios' },
  instructions: { flag: '--instructions', stage: 'scenarios' },
  count: { flag: '--count', stage: 'scenarios' },
  heldOut: { flag: '--held-out', stage: 'scenarios' },
  attempts: { flag: '--attempts', stage: 'scenarios' },
  judge: { flag: '--judge', stage: 'agent' },
};

const DEFAULTS: Omit<AutoSettings, 'task' | 'heldOut' | 'judge'> = {
  mcp: null,
  tools: null,
  mcpEnv: [],
  instructions: null,
  count: 24,
  // For feasibility alone: the hosted model solves much that the model in training has to learn.
  attempts: 1,
  model: 'openai/gpt-5-mini',
  keyEnv: null,
  prices: [],
  maxCostUsd: null,
};

/** Settings of this command. `isDone` says which stages stay as they are. */
export function readAutoSettings(
  context: Pick<AutoContext, 'flags' | 'args'>,
  recorded: AutoSettings | null,
  isDone: (stage: Stage) => boolean,
): AutoSettings {
  const asked = askedBy(context);
  const known = { ...DEFAULTS, ...recorded, ...asked };
  const { task, count, judge = known.model } = known;
  if (task === undefined || task === '')
    throw new UsageError(
      `TASK must be a sentence that says what the agent has to do, or --out a folder with ${STATE_FILE}; write temper auto "answer questions about …"`,
    );
  const isKept = asked.heldOut !== undefined || asked.count === undefined;
  const heldOut = (isKept ? known.heldOut : undefined) ?? defaultHeldOut(count);
  const settings: AutoSettings = { ...known, task, judge, heldOut };
  checkSettings(settings);
  if (recorded !== null) refuseContradictions(recorded, settings, isDone);
  return settings;
}

/** Without what was not given. */
function askedBy({ flags, args }: Pick<AutoContext, 'flags' | 'args'>): Partial<AutoSettings> {
  const given: { readonly [Name in keyof AutoSettings]: AutoSettings[Name] | null } = {
    task: args.task?.trim() ?? null,
    mcp: flags.mcp,
    tools: flags.tools === null ? null : [...flags.tools],
    mcpEnv: nonEmpty(flags['mcp-env']),
    instructions: flags.instructions,
    count: flags.count,
    heldOut: flags['held-out'],
    attempts: flags.attempts,
    model: flags.model,
    judge: flags.judge,
    keyEnv: flags['key-env'],
    prices: nonEmpty(flags.price),
    maxCostUsd: flags['max-cost-usd'],
  };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null));
}

function nonEmpty(texts: readonly string[]): string[] | null {
  return texts.length === 0 ? null : [...texts];
}

function checkSettings({ heldOut, count, mcp, tools, mcpEnv }: AutoSettings): void {
  if (heldOut >= count)
    throw new UsageError(
      `--held-out must be less than --count ${count}, or nothing is left to train on, got ${heldOut}; lower it`,
    );
  const unused = [tools === null ? [] : ['--tools'], mcpEnv.length === 0 ? [] : ['--mcp-env']].flat();
  if (mcp === null && unused.length > 0)
    throw new UsageError(`${unused[0]} has no effect without --mcp; leave it out, or pass the server`);
}

function refuseContradictions(recorded: AutoSettings, settings: AutoSettings, isDone: (stage: Stage) => boolean): void {
  for (const [name, { flag, stage }] of Object.entries(FIXED_BY)) {
    const [before, now] = [recorded[name as keyof AutoSettings], settings[name as keyof AutoSettings]];
    if (canonicalJson(before) === canonicalJson(now) || !isDone(stage)) continue;
    throw new UsageError(
      `${flag} must be ${showValue(before)} in this folder, whose ${stage} are made, got ${showValue(now)}; leave it out, pass --redo ${stage}, or choose another folder with --out`,
    );
  }
}
