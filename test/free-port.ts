import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * The system lends none of these to connections and to listeners on port 0, and local stacks use others
 * (`workers/local-stack/protocol/ports.ts`): so a port stays free while the program that is told it starts.
 */
const [FIRST_PORT, PORTS] = [10_000, 7000];

export async function freePort(): Promise<number> {
  const port = FIRST_PORT + randomInt(PORTS);
  const probe = createServer().listen({ host: '127.0.0.1', port, exclusive: true });
  try {
    await once(probe, 'listening');
  } catch {
    return freePort();
  }
  probe.close();
  await once(probe, 'close');
  return port;
}
