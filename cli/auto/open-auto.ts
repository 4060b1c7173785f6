/** A command of `temper auto`: all that can be wrong is refused here, before anything is written or paid for. */
import { mkdir, rmdir } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { existsSync } from 'node:fs';
import { parseHostedModel } from '../../play/connections/providers.ts';
import type { Store } from '../../store/store.ts';
import { openProjectStore } from '../../workers/config/project-store.ts';
import type { CommandEnvironment } from '../command-line/command.ts';
import { UsageError } from '../command-line/errors.ts';
import { findPlayers } from '../eval/players.ts';
import { packageNameOf } from '../init/plan-init.ts';
import { flagText } from '../planning/project-flags.ts';
import { parseMcp, readToolServer, type McpOptions, type ToolServerFacts } from '../scenarios/origin.ts';
import { checkPrices } from '../scenarios/plan-scenarios.ts';
import { AutoState, newState, readAutoState, workOf } from './auto-state.ts';
import { isEdited, type AutoWork, type HostedPlayer } from './auto-work.ts';
import type { AutoContext } from './command.ts';
import { OUTPUTS } from './file-names.ts';
import { pathFrom, trainFlags, type TrainFlags } from './project-files.ts';
import { checkRunFlags } from './run-stage.ts';
import { readAutoSettings, type AutoSettings } from './settings.ts';
import { isUpTo, STAGES, type Stage } from './stages.ts';

export interface OpenAuto extends Omit<AutoWork, 'ledger'> {
  readonly train: TrainFlags;
  readonly until: Stage;
  /** From this stage on, all is made anew; null for none. */
  readonly redo: Stage | null;
  readonly server: ToolServerFacts | null;
}

const LONGEST_NAME = 40;

export async function openAuto(context: AutoContext): Promise<OpenAuto> {
  const { flags, args, cwd, env } = context;
  const { redo } = flags;
  const until = flags.until ?? 'report';
  if (redo !== null && !isUpTo(redo, until))
    throw new UsageError(`--redo ${redo} must not come after --until ${until}; leave one of them out`);
  const folder = resolve(cwd, flags.out ?? (args.task === null ? '.' : nameOf(args.task)));
  const known = readAutoState(folder);
  const isKept = (stage: Stage) => known?.done[stage] !== undefined && (redo === null || !isUpTo(redo, stage));
  const settings = readAutoSettings(context, known?.settings ?? null, isKept);
  const environment: CommandEnvironment = { ...context, cwd: folder, project: folder };
  const train = trainFlags(flags, folder, cwd);
  const trainWords = flagText({ train });
  if (isUpTo('run', until)) await checkRunFlags({ environment, trainWords });
  const store = await openProjectStore(folder, env);
  if (redo !== null) await refuseEdited({ store, folder }, redo);
  const { writer, judge } = await findModels(environment, settings, store);
  const mcp = mcpOf(settings, folder, cwd);
  const state = new AutoState(folder, known ?? newState(settings));
  const server = mcp === null ? null : await askServer(mcp, { store, work: workOf(state), folder });
  const name = nameOf(basename(folder));
  const work = { environment, folder, name, settings, state, store, writer, judge, mcp, trainWords };
  return { ...work, train, until, redo, server };
}

/** The first words of a text, as the name of a folder, an agent and a run. */
function nameOf(text: string): string {
  const words = packageNameOf(text).split('-');
  let name = words.shift()!.slice(0, LONGEST_NAME);
  for (const word of words) {
    if (name.length + word.length >= LONGEST_NAME) break;
    name += `-${word}`;
  }
  return name;
}

async function refuseEdited(place: { readonly store: Store; readonly folder: string }, redo: Stage): Promise<void> {
  for (const name of STAGES.filter((stage) => isUpTo(redo, stage)).flatMap((stage) => OUTPUTS[stage]))
    if (await isEdited(place, name))
      throw new UsageError(
        `--redo ${redo} would write ${name} again, but that file is not as temper auto wrote it; move ${join(place.folder, name)} away, or leave --redo out`,
      );
}

async function findModels(
  environment: CommandEnvironment,
  { model, judge, keyEnv, prices, maxCostUsd }: AutoSettings,
  store: Store,
): Promise<{ writer: HostedPlayer; judge: HostedPlayer }> {
  for (const [flag, name] of Object.entries({ model, judge }))
    if (parseHostedModel(name, environment.env) === null)
      throw new UsageError(
        `--${flag} must be a hosted model, got ${JSON.stringify(name)}; pass provider/model, such as openai/gpt-5-mini, or URL#MODEL`,
      );
  const flags = {
    model: [...new Set([model, judge])],
    price: prices,
    'key-env': keyEnv,
    'base-url': null,
    temperature: null,
    'max-tokens': null,
    'chat-template': null,
    seed: null,
  };
  const { players } = await findPlayers({ ...environment, flags }, store, 'auto');
  if (maxCostUsd !== null) checkPrices(players);
  const [writer, other = writer] = players as [HostedPlayer, HostedPlayer?];
  return { writer, judge: other };
}

function mcpOf({ mcp, tools, mcpEnv }: AutoSettings, folder: string, cwd: string): McpOptions | null {
  if (mcp === null) return null;
  const options = parseMcp({ flag: '--mcp', place: mcp, only: tools, env: mcpEnv });
  if (!('command' in options)) return options;
  // The server is started in the agent's folder.
  const args = (options.args ?? []).map((arg) => pathFrom(arg, folder, cwd));
  return { ...options, command: pathFrom(options.command, folder, cwd), args };
}

/** A server is started in the folder, which is there only if the server is of use. */
async function askServer(
  options: McpOptions,
  place: { store: Store; work: string; folder: string },
): Promise<ToolServerFacts> {
  const { folder } = place;
  const isNew = !existsSync(folder);
  await mkdir(folder, { recursive: true });
  try {
    return await readToolServer(options, place);
  } catch (error) {
    if (isNew) await rmdir(folder).catch(() => undefined);
    throw error;
  }
}
