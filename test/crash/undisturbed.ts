/** The run that all others are compared with. */
import { digest, learns, replaces, type Digest } from './evidence.ts';
import { untilEnded } from './row.ts';
import type { World } from './world.ts';

export async function playUndisturbed(world: World): Promise<Digest> {
  world.clear();
  const running = world.train('undisturbed');
  await untilEnded(running).catch((error) => {
    console.log(running.output());
    throw error;
  });
  if (!learns(world, 'undisturbed')) throw new Error('the undisturbed run must train every step, it does not');
  if (!replaces(world, 'undisturbed')) throw new Error('the undisturbed run must replace a group, it does not');
  return digest(world, 'undisturbed');
}
