import { getEventListeners } from 'node:events';
import { Client, Connection, isGrpcServiceError } from '@temporalio/client';
import { expect, it } from 'vitest';
import { describeError } from '../../cli/command-line/errors.ts';
import { awaitRun, explainRunFailure, joinedNote } from '../../cli/session/play-session.ts';

type Awaited = Parameters<typeof awaitRun>[0];

/** A client whose every question leaves a listener behind, and ends when its signal does. */
function makeConnection() {
  const signals: AbortSignal[] = [];
  const withAbortSignal: Awaited['withAbortSignal'] = async (signal, ask) => {
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

it('a server that is gone when a run is started is told as such, with what to do', async () => {
  const connection = Connection.lazy({ address: '127.0.0.1:1' });
  const { workflow } = new Client({ connection });
  const start = () => workflow.start('trainRun', { workflowId: 'run/demo', taskQueue: 'temper' });
  const error: unknown = await connection.withDeadline(Date.now() + 300, start).catch((reason: unknown) => reason);
  await connection.close();
  expect(isGrpcServiceError(error)).toBe(false);
  expect(describeError(explainRunFailure('demo', error))).toEqual({
    exitCode: 1,
    text: expect.stringMatching(
      /^temper: the Temporal server is not responding \(.*\); see temper doctor, then run the same command again$/,
    ) as string,
  });
});

it('a command that joins a stack is told what its base models are loaded in, where somebody chose that', () => {
  const auto = { device: 'auto', dtype: 'auto', loadIn4bit: false } as const;
  expect(joinedNote(auto)).toBe('joined the running local stack');
  expect(joinedNote({ ...auto, loadIn4bit: true })).toBe(
    'joined the running local stack, which loads base models in float32 or bfloat16 with 4 bits per weight',
  );
  expect(joinedNote({ ...auto, dtype: 'bfloat16' })).toMatch(/, which loads base models in bfloat16$/);
});
