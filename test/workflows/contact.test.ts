import { NativeConnection } from '@temporalio/worker';
import { expect, inject, test } from 'vitest';

import { createContact } from '../../activities/contact.ts';
import { keepContact } from '../../workers/worker/worker.ts';
import { Proxy } from '../store/bytes/proxy.ts';
import { eventually } from './harness.ts';

test('a worker knows that the server answers it, and that it does not any more', async () => {
  const proxy = await Proxy.start(Number(inject('temporalAddress').split(':')[1]));
  const connection = await NativeConnection.connect({ address: new URL(proxy.url).host });
  const contact = createContact();
  const over = new AbortController();
  const keeping = keepContact(connection, contact, over.signal);
  try {
    const began = Date.now();
    const silence = (from: number) => () => Promise.resolve(contact.silenceMs(from));
    const lately = () => silence(Date.now() - 3000)();
    await eventually(lately, (silenceMs) => Date.now() - began > 3000 && silenceMs < 2900);
    const cutOffAt = Date.now();
    await proxy.stop();
    await eventually(silence(began), (silenceMs) => silenceMs > 5000);
    expect(Date.now() - cutOffAt).toBeGreaterThan(1000);
  } finally {
    over.abort();
    await keeping;
    await connection.close();
  }
});
