import { ServiceError } from '@temporalio/client';
import { expect, test } from 'vitest';

import { answered } from '../../../workers/workflow-agents/temporal-server.ts';

/** Codes of gRPC. */
const status = { INVALID_ARGUMENT: 3, PERMISSION_DENIED: 7, FAILED_PRECONDITION: 9, UNAVAILABLE: 14 };

/** The server's answer as the client raises it. */
function refusal(code: number, details: string): ServiceError {
  const cause = Object.assign(new Error(details), { code, details, metadata: {} });
  return new ServiceError('Workflow Update failed', { cause });
}

/** Answers once the errors are used up. */
async function ask(...errors: Error[]) {
  const reasons: (string | null)[] = [];
  const told = await answered(
    () => {
      const error = errors.shift();
      return error === undefined ? Promise.resolve('a draft') : Promise.reject(error);
    },
    { name: 'the server', signal: new AbortController().signal, onSilence: (reason) => reasons.push(reason) },
  );
  return { told, reasons };
}

test('a workflow whose task is done again is waited for, and a server that is away', async () => {
  const notReady = refusal(status.FAILED_PRECONDITION, 'Unable to perform workflow execution update');
  expect(await ask(notReady)).toEqual({
    told: 'a draft',
    reasons: ['the workflow does not answer: its task failed or took too long; see the log of its worker', null],
  });
  expect(await ask(refusal(status.UNAVAILABLE, 'no connection'))).toEqual({
    told: 'a draft',
    reasons: ['the Temporal server the server does not answer', null],
  });
});

test('a refusal is a mistake in the configuration, and what the workflow itself says goes to the agent', async () => {
  const refused = ask(refusal(status.PERMISSION_DENIED, 'no right'));
  await expect(refused).rejects.toMatchObject({ type: 'BadConfig', message: expect.stringContaining('no right') });
  const mistaken = refusal(status.INVALID_ARGUMENT, 'no such update');
  await expect(ask(mistaken)).rejects.toBe(mistaken);
});
