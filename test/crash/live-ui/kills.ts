/** Kills of the run's processes, by a seed: after which steps, and whom. */
import { createRandom } from '../../../core/numbers/seeds.ts';
import type { Trial } from './trial.ts';

const VICTIMS = ['worker-', 'gpu-worker', 'temporal-server'] as const;

/** Steps take less than a second: a victim has to come back before the next one falls. */
const LEAST_STEPS = 8;
const MORE_STEPS = 10;

/** Each victim once at least, then by chance. */
export async function killAlong(trial: Trial, run: string, steps: number, seed: number): Promise<number> {
  const random = createRandom(seed);
  const order = VICTIMS.toSorted(() => random() - 0.5);
  let kills = 0;
  for (let step = LEAST_STEPS; step < steps; step += LEAST_STEPS + Math.floor(random() * MORE_STEPS)) {
    const victim = order[kills] ?? VICTIMS[Math.floor(random() * VICTIMS.length)]!;
    await trial.reach(run, step);
    if ((await trial.stateOf(run))?.state === 'completed') break;
    if (tryKill(trial, victim)) kills += 1;
  }
  return kills;
}

/** One that was killed just before may not be back. */
function tryKill(trial: Trial, victim: string): boolean {
  try {
    process.kill(trial.project.pid(victim), 'SIGKILL');
  } catch {
    return false;
  }
  trial.say(`killed ${victim}`);
  return true;
}
