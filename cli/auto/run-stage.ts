/** The run, planned and played as `temper train` does. */
import { requireRun } from '../../store/records/run-reader.ts';
import { EXIT } from '../command-line/errors.ts';
import { parseCommandLine } from '../command-line/parse.ts';
import { readBaseModel, requireBaseModel } from '../planning/base-model.ts';
import { readProjectFlags } from '../planning/project-flags.ts';
import { applyRunFlags, fieldsOf } from '../planning/run-flags.ts';
import { playRun } from '../session/play-run.ts';
import { trainCommand, type TrainContext } from '../train/command.ts';
import { planTrain } from '../train/plan-train.ts';
import type { AutoWork } from './auto-work.ts';
import { AGENT_FILE } from './file-names.ts';

/** The exit code: other than 0 if somebody stopped watching. */
export async function playAutoRun(work: AutoWork): Promise<number> {
  const run = work.state.run ?? (await planName(work));
  const words = [`--run=${run.name}`, ...(run.maxCostUsd === null ? [] : [`--max-cost-usd=${run.maxCostUsd}`])];
  const context = await trainContext(work, words);
  const plan = await planTrain(context);
  const code = await playRun(context, plan, context.flags);
  if (code === EXIT.ok) await chargeJudge(work, run.name);
  return code;
}

/** Recorded before the run is planned: a continued run must be asked for with the same settings. */
async function planName({ state, name, settings, ledger }: AutoWork): Promise<NonNullable<AutoWork['state']['run']>> {
  const round = state.round('run');
  const left = settings.maxCostUsd === null ? null : settings.maxCostUsd - (ledger.spent.usd ?? 0);
  const run = {
    name: round === 0 ? name : `${name}-${round + 1}`,
    maxCostUsd: left === null ? null : Math.max(0, Number(left.toFixed(4))),
  };
  await state.setRun(run);
  return run;
}

/** Adds the cost of the run's judge to the ledger. */
async function chargeJudge({ store, ledger }: AutoWork, run: string): Promise<void> {
  const { state, file } = await requireRun(store, run);
  const spent = state?.judging ?? null;
  if (spent !== null) await ledger.charge('judge of the run', run, { model: String(file.config.judge), ...spent });
}

/** Flags of the project, then those of the command line. */
export async function trainContext(
  { environment, trainWords }: Pick<AutoWork, 'environment' | 'trainWords'>,
  words: readonly string[],
): Promise<TrainContext> {
  const projectWords = await readProjectFlags(environment, trainCommand.flags);
  const line = parseCommandLine(trainCommand, [AGENT_FILE, ...projectWords, ...trainWords, ...words]);
  if (line.isHelp) throw new Error('flags of a project cannot ask for help');
  return { ...environment, flags: line.flags, args: line.args };
}

/** The run's settings, as far as they are known before there is an agent; refuses what `temper train` would refuse of them. */
export async function checkRunFlags(place: Pick<AutoWork, 'environment' | 'trainWords'>): Promise<void> {
  const { flags } = await trainContext(place, []);
  const model = await readBaseModel(requireBaseModel(flags), place.environment, false);
  applyRunFlags({ run: 'auto', agent: 'auto', baseModel: model.name }, fieldsOf(flags, null));
}
