/** `temper distill --from-otlp` and `--from-langfuse`: recorded conversations as chats, and how they began as scenarios. */
import { resolve } from 'node:path';

import { badConfig, type TemperError } from '../../../core/contract/failures.ts';
import { EXIT } from '../../command-line/errors.ts';
import type { CommandEnvironment } from '../../command-line/command.ts';
import { plural } from '../../../core/reports/format.ts';
import { distill, toLine } from '../chats/distilled-chats.ts';
import { refuseExisting, writeWhole } from '../../command-line/files.ts';
import { readLangfuse } from './langfuse-traces.ts';
import { readOtlpFile } from './read-otlp-file.ts';
import { readTraced, toAttempt, toScenarios, type TracedConversations } from './trace-conversations.ts';

const MOST = 10_000;

interface TracesContext extends Pick<CommandEnvironment, 'cwd' | 'env' | 'output' | 'signal'> {
  readonly flags: {
    readonly out: string;
    readonly top: string | null;
    readonly score: string | null;
    readonly scenarios: string | null;
    readonly since: string | null;
    readonly most: number | null;
    readonly 'from-otlp': string | null;
  };
}

export async function distillTraces(context: TracesContext): Promise<number> {
  const { flags, cwd, output } = context;
  if (flags.scenarios !== null && resolve(cwd, flags.scenarios) === resolve(cwd, flags.out))
    throw badConfig(`--out and --scenarios must be two files, got ${flags.out} for both; pass another one`);
  const { source, found } = await readTraces(context);
  const { conversations, otherSpans, leftOut } = found;
  const taken = flags.top === null ? conversations : conversations.filter(({ score }) => score !== null);
  const share = flags.top === null ? 1 : Number.parseFloat(flags.top) / 100;
  const { examples, attempts, repeated, empty } = distill(taken.map(toAttempt), share);
  const unscored = new Set(conversations.filter(({ score }) => score === null).map(({ id }) => id));
  if (examples.length === 0) throw nothingTaken(source, found, taken.length);
  const file = resolve(cwd, flags.out);
  // Neither of two files is written if one of them cannot be.
  if (flags.scenarios !== null) refuseExisting('--scenarios', resolve(cwd, flags.scenarios));
  const chats = examples.map((example) => {
    const { reward, ...place } = example.metadata ?? {};
    const isScored = reward !== undefined && !unscored.has(String(place['conversation']));
    return toLine({ ...example, metadata: isScored ? { ...place, reward } : place });
  });
  await writeWhole('--out', file, chats.join(''), 'new');
  const of = `${attempts.length} of ${plural(conversations.length, 'conversation')}`;
  output.line(`${of} in ${source}: ${plural(examples.length, 'example')} in ${file}`);
  if (flags.scenarios !== null) await writeScenarios(context, flags.scenarios, found);
  const unranked = conversations.length - taken.length;
  const notes: [number, string][] = [
    ...[...leftOut].map(([reason, calls]): [number, string] => [calls, `${plural(calls, 'call')} left out: ${reason}`]),
    [unranked, `${plural(unranked, 'conversation')} without a score named ${flags.score ?? DEFAULT_SCORE} left out`],
    [repeated, `${plural(repeated, 'repeated conversation')} left out`],
    [empty, `${plural(empty, 'conversation')} with an empty answer left out`],
    [otherSpans, `${plural(otherSpans, 'span')} of agents, tools and other operations`],
  ];
  for (const [count, note] of notes) if (count > 0) output.line(`note: ${note}`);
  return EXIT.ok;
}

const DEFAULT_SCORE = 'reward';

async function readTraces(context: TracesContext) {
  const { flags, cwd } = context;
  const score = flags.score ?? DEFAULT_SCORE;
  if (flags['from-otlp'] !== null) {
    const path = resolve(cwd, flags['from-otlp']);
    return { source: path, found: readTraced(await readOtlpFile(path), score) };
  }
  const { since, most } = flags;
  if (since !== null && Number.isNaN(Date.parse(since)))
    throw badConfig(`--since must be a time, got ${since}; pass one such as 2026-11-20 or 2026-11-20T12:00:00Z`);
  const { spans, scores } = await readLangfuse(context, {
    since: since === null ? null : new Date(since).toISOString(),
    most: most ?? MOST,
    score: flags.top === null ? flags.score : score,
  });
  return { source: 'Langfuse', found: readTraced(spans, score, scores) };
}

async function writeScenarios(
  { cwd, output }: TracesContext,
  name: string,
  { conversations }: TracedConversations,
): Promise<void> {
  const file = resolve(cwd, name);
  const scenarios = toScenarios(conversations);
  const lines = scenarios.map((scenario) => `${JSON.stringify(scenario)}\n`);
  await writeWhole('--scenarios', file, lines.join(''), 'new');
  output.line(`${plural(scenarios.length, 'scenario')} in ${file}`);
}

function nothingTaken(source: string, { conversations, leftOut }: TracedConversations, taken: number): TemperError {
  const reasons = [...leftOut].map(([reason, calls]) => `${calls} left out: ${reason}`).join('; ');
  const rule = `${source} must have conversations to take`;
  if (conversations.length === 0)
    return badConfig(
      `${rule}, it has ${reasons === '' ? 'no calls of models' : `none (${reasons})`}; record prompts and answers on the spans of model calls`,
    );
  if (taken === 0)
    return badConfig(
      `${rule}, but none of its ${conversations.length} has a score of that name; pass --score NAME, or leave --top out`,
    );
  return badConfig(
    `${rule}, but none of its ${conversations.length} has an answer with text or calls; name other traces`,
  );
}
