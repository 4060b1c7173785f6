/** Replays histories one after the other, by one worker: each loads the bundle. */
import { Worker, type ReplayWorkerOptions } from '@temporalio/worker';
import { PATIENT_THREAD } from '../../workers/worker/workflow-bundle.ts';

export interface Replayer {
  /** Throws where today's code does not do what the history says. */
  replay(workflowId: string, history: unknown): Promise<void>;
  close(): Promise<void>;
}

export function createReplayer(options: ReplayWorkerOptions): Replayer {
  const given: { workflowId: string; history: unknown }[] = [];
  async function* histories() {
    for (let next = given.shift(); next !== undefined; next = given.shift()) yield next;
  }
  const results = Worker.runReplayHistories({ ...options, ...PATIENT_THREAD }, histories());
  const replayNext = async (before: Promise<unknown>, next: (typeof given)[number]): Promise<void> => {
    await before;
    given.push(next);
    const { value } = await results.next();
    if (value.error !== undefined) throw value.error;
  };
  let last: Promise<unknown> = Promise.resolve();
  return {
    replay(workflowId, history) {
      const replayed = replayNext(last, { workflowId, history });
      last = replayed.catch(() => undefined);
      return replayed;
    },
    async close() {
      await last;
      await results.return?.();
    },
  };
}
