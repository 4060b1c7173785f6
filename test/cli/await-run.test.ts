import { getEventListeners } from 'node:events';
import { expect, it } from 'vitest';
import { awaitRun } from '../../cli/train/await-run.ts';

type Connection = Parameters<typeof awaitRun>[0];

/** A client whose every question leaves a listener behind, and ends when its signal does. */
function makeConnection() {
  const signals: AbortSignal[] = [];
  const withAbortSignal: Connection['withAbortSignal'] = async (signal, ask) => {
    signals.push(signal);
    const cancelled = new Promise<never>((_, reject) => {
      signal.addEventListener('abort', () => reject(new Error('cancelled')));
    });
    return Promise.race([ask(), cancelled]);
  };
  return { signals, connection: { withAbortSignal } };
}

const never = () => new Promise<never>(() => undefined);

it('a run is listened to on a new signal each time, so that nothing piles up on the one of the command', async () => {
  const { signals, connection } = makeConnection();
  const command = new AbortController();
  const ask = () => (signals.length < 4 ? never() : Promise.resolve('done'));
  await expect(awaitRun(connection, ask, { signal: command.signal, listenMs: 5 })).resolves.toBe('done');
  expect(new Set(signals).size).toBe(4);
  expect(getEventListeners(command.signal, 'abort')).toEqual([]);
});

it('a command that lets go ends the wait, and a failure of the run is told as it is', async () => {
  const { connection } = makeConnection();
  const command = new AbortController();
  const waiting = awaitRun(connection, never, { signal: command.signal });
  command.abort();
  await expect(waiting).rejects.toThrow('cancelled');
  const failing = () => Promise.reject(new Error('the run failed'));
  await expect(awaitRun(connection, failing, { signal: new AbortController().signal })).rejects.toThrow(
    'the run failed',
  );
});
