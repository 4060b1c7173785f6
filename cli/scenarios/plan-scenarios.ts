/** Plan of `temper scenarios`: all that can be wrong is refused before anything is paid for. */
import { resolve } from 'node:path';
import { badConfig } from '../../core/contract/failures.ts';
import { hashOf } from '../../core/text/hashes.ts';
import type { Store } from '../../store/store.ts';
import { openProjectStore } from '../../workers/config/project-store.ts';
import { findPlayers, type Player, type Players } from '../players/players.ts';
import type { ScenariosContext } from './command.ts';
import type { MakePlan } from './make-plan.ts';
import { parseMcp, readToolServer, type McpOptions, type ScenarioOrigin } from './origin.ts';
import { checkReplaceable, heldOutFile } from './write-files.ts';

export interface ScenariosPlan extends MakePlan {
  readonly store: Store;
  /** Folder of this work in the store. */
  readonly work: string;
  /** For the local stack. */
  readonly players: Players;
  readonly files: { readonly train: string; readonly heldOut: string };
  /** Null: no limit. */
  readonly maxUsd: number | null;
  readonly concurrency: number;
}

const DEFAULTS = { count: 24, attempts: 3, maxTurns: 10, seed: 1, concurrency: 8, out: 'scenarios.jsonl' };
const WORK_CHARACTERS = 16;

type Flags = ScenariosContext['flags'];

type Source = { readonly task: string } | { readonly mcp: McpOptions };

export async function planScenarios(context: ScenariosContext): Promise<ScenariosPlan> {
  const { flags, cwd, project, env } = context;
  const source = readSource(flags);
  const count = flags.count ?? DEFAULTS.count;
  const heldOut = readHeldOut(flags['held-out'], count);
  const store = await openProjectStore(project, env);
  const train = resolve(cwd, flags.out ?? DEFAULTS.out);
  const files = { train, heldOut: heldOutFile(train) };
  await checkReplaceable(store, Object.values(files));
  const models = await findModels(context, store);
  const seed = flags.seed ?? DEFAULTS.seed;
  const work = hashOf({ source, instructions: flags.instructions, seed }).slice(0, WORK_CHARACTERS);
  return {
    ...models,
    origin: await findOrigin(source, { store, work, folder: cwd }),
    instructions: flags.instructions,
    count,
    heldOut,
    attempts: flags.attempts ?? DEFAULTS.attempts,
    maxTurns: flags['max-turns'] ?? DEFAULTS.maxTurns,
    seed,
    store,
    work,
    files,
    maxUsd: flags['max-cost-usd'],
    concurrency: flags.concurrency ?? DEFAULTS.concurrency,
  };
}

function readSource(flags: Flags): Source {
  const { 'from-mcp': place, 'from-task': task, tools: only, 'mcp-env': env } = flags;
  if ((place === null) === (task === null))
    throw badConfig('scenarios must come from one source: pass --from-mcp SERVER or --from-task TEXT');
  if (place !== null) return { mcp: parseMcp({ flag: '--from-mcp', place, only, env }) };
  if (task!.trim() === '') throw badConfig('--from-task must be a task in one sentence, got an empty text; pass one');
  return { task: task! };
}

/** A third. */
function defaultHeldOut(count: number): number {
  return Math.max(1, Math.floor(count / 3));
}

export function readHeldOut(given: number | null, count: number): number {
  const heldOut = given ?? defaultHeldOut(count);
  if (heldOut < count) return heldOut;
  throw badConfig(
    `--held-out must be less than --count ${count}, or nothing is left to train on, got ${heldOut}; pass --held-out ${defaultHeldOut(count)}`,
  );
}

type Models = Pick<ScenariosPlan, 'model' | 'tryWith' | 'players'>;

async function findModels(context: ScenariosContext, store: Store): Promise<Models> {
  const { flags } = context;
  const names = [flags.model, flags['try-with'] ?? flags.model];
  const asked = { temperature: null, 'max-tokens': null, 'chat-template': null, seed: flags.seed };
  const named = { ...flags, ...asked, model: [...new Set(names)] };
  const players = await findPlayers({ ...context, flags: named }, store, 'scenarios');
  const [writer, tryWith = writer] = players.players as [Player, Player?];
  if (writer.hosted === null)
    throw badConfig(
      `--model must be a hosted model (it writes the scenarios), got ${writer.name}; pass provider/model, or URL#MODEL, and ${writer.name} as --try-with`,
    );
  if (flags['max-cost-usd'] !== null) checkPrices([writer, tryWith]);
  return { model: { hosted: writer.hosted, price: writer.price }, tryWith, players };
}

/** A budget that nothing is counted against would hold nobody back. */
export function checkPrices(players: readonly Player[]): void {
  for (const { name, hosted, price } of players)
    if (hosted !== null && price === null && hosted.isFree !== true && hosted.reportsCost !== true)
      throw badConfig(
        `--max-cost-usd has no effect while the price of ${name} is unknown; pass --price ${name}=IN/OUT (US dollars per million tokens)`,
      );
}

async function findOrigin(source: Source, place: Parameters<typeof readToolServer>[1]): Promise<ScenarioOrigin> {
  if ('task' in source) return { kind: 'task', task: source.task };
  return { kind: 'mcp', options: source.mcp, server: await readToolServer(source.mcp, place) };
}
