/** `temper reward`: checks all rewards before it gives the first, and wakes the run once a group is complete. */
import { openGiver, type GivingAnswer, type Giver, type RefusedReward } from '../../store/records/give-reward.ts';
import type { Store } from '../../store/store.ts';
import { openProjectStore } from '../../workers/config/project-store.ts';
import type { CommandContext } from '../command-line/command.ts';
import { EXIT, UsageError, WorkFailed } from '../command-line/errors.ts';
import type { ProjectPlace } from '../../operations/server.ts';
import { plural } from '../../core/format.ts';
import type { Output } from '../terminal/output.ts';
import type { rewardCommand } from './command.ts';
import { wakeOverServer } from '../connections/wake.ts';
import { readMetrics, readFinite, readRewards, type PlacedReward } from './read-rewards.ts';

type Context = CommandContext<typeof rewardCommand>;

export async function giveRewards(context: Context): Promise<number> {
  const { args, project, env, output } = context;
  const store = await openProjectStore(project, env);
  const giver = await openGiver(store, args.run);
  const rewards = await readGivenRewards(context);
  await checkAll(giver, rewards);
  const answers = await giveAll(giver, rewards);
  tell(output, rewards, answers);
  if (answers.some((answer) => answer.outcome !== 'refused' && answer.missing === 0 && !answer.isDecided))
    output.line(await wake(context, store, args.run));
  const refused = answers.filter((answer) => answer.outcome === 'refused');
  // Checked before, they were decided meanwhile.
  if (refused.length > 0)
    throw new WorkFailed(`${plural(refused.length, 'reward')} came too late: ${refused[0]!.message}`);
  return EXIT.ok;
}

async function readGivenRewards({ args, flags, cwd }: Context): Promise<PlacedReward[]> {
  const { file, metric, by, note, key } = flags;
  if (file !== null) {
    const useless =
      args.attempt !== null ? args.attempt : metric.length > 0 ? '--metric' : key !== null ? '--key' : null;
    if (useless !== null)
      throw new UsageError(`${useless} has no effect with --file, which names the attempts; leave one out`);
    return readRewards(file, args.run, cwd, { by, note });
  }
  const { attempt, value } = args;
  if (attempt === null || value === null)
    throw new UsageError(
      'ATTEMPT and VALUE are missing; usage: temper reward RUN ATTEMPT VALUE, or temper reward RUN --file FILE',
    );
  const given = { attempt, reward: readFinite(value, 'VALUE'), metrics: readMetrics(metric), by, note, key };
  return [{ given, place: null }];
}

async function checkAll(giver: Giver, rewards: readonly PlacedReward[]): Promise<void> {
  for (const { given, place } of rewards) {
    const refusal = await giver.check(given);
    if (refusal === null) continue;
    throw new UsageError(
      place === null ? refusal.message : `${place}: ${refusal.message}; no reward of the file was given`,
    );
  }
}

async function giveAll(giver: Giver, rewards: readonly PlacedReward[]): Promise<GivingAnswer[]> {
  const answers: GivingAnswer[] = [];
  for (const { given } of rewards) answers.push(await giver.give(given));
  return answers;
}

function tell(output: Output, rewards: readonly PlacedReward[], answers: readonly GivingAnswer[]): void {
  const [first] = rewards;
  if (rewards.length > 1 || first?.place !== null) {
    const count = (outcome: GivingAnswer['outcome']): number =>
      answers.filter((each) => each.outcome === outcome).length;
    const same = count('same');
    output.line(`${plural(count('given'), 'reward')} given${same === 0 ? '' : `, ${same} given before`}`);
    return;
  }
  const [answer] = answers;
  if (answer !== undefined && answer.outcome !== 'refused') output.line(describeGiving(first.given.attempt, answer));
}

function describeGiving(attempt: string, answer: Exclude<GivingAnswer, RefusedReward>): string {
  const { reward } = answer.row;
  if (answer.outcome === 'same') return `${attempt} has the reward ${reward} already`;
  if (answer.missing === 0) return `${attempt} has the reward ${reward}; its group is complete`;
  return `${attempt} has the reward ${reward}; ${plural(answer.missing, 'attempt')} of its group still wait`;
}

/** Wakes the run; the sentence says whether it was. */
async function wake(place: ProjectPlace, store: Store, run: string): Promise<string> {
  const isAwake = await wakeOverServer(place, store, run);
  if (isAwake === null)
    return `the run ${run} continues once its server and a worker are running (temper train or temper dev)`;
  return isAwake ? `the run ${run} was told` : `the run ${run} is not running; temper train continues it`;
}
