/** Ports of the local stack: the same at every start, unless a stranger took one. */
import { createHash } from 'node:crypto';
import { createServer } from 'node:net';
import { badConfig, type TemperError } from '../../../core/contract/failures.ts';
import type { StackPorts } from './stack-file.ts';

/** Below the range from which operating systems lend ports to outgoing connections. */
const FIRST_PORT = 17_000;
const PORT_RANGE = 15_000;
const MAX_TRIES = 200;

export type WantedPorts = { readonly [name in keyof StackPorts]: number | null };

const FLAGS: { readonly [name in keyof StackPorts]: string } = {
  temporal: 'localStack.temporalPort in temporal.config.ts',
  ui: '--ui-port',
  engine: '--engine-port',
};

/** A port asked for by name must be free; a remembered one is taken again if it is; else the next free one. */
export async function choosePorts(
  project: string,
  wanted: WantedPorts,
  remembered: StackPorts | null,
): Promise<StackPorts> {
  const taken = new Set<number>();
  const choose = async (name: keyof StackPorts, offset: number) => {
    const port =
      wanted[name] === null
        ? await freePort(project, offset, remembered?.[name] ?? null, taken)
        : await wantedPort(name, wanted[name]);
    taken.add(port);
    return port;
  };
  return { temporal: await choose('temporal', 0), ui: await choose('ui', 1), engine: await choose('engine', 2) };
}

async function wantedPort(name: keyof StackPorts, port: number): Promise<number> {
  if (await isFree(port)) return port;
  throw badConfig(
    `port ${port} (${FLAGS[name]}) must be free, but another program listens on it; choose another port or remove the setting`,
  );
}

async function freePort(
  project: string,
  offset: number,
  remembered: number | null,
  taken: ReadonlySet<number>,
): Promise<number> {
  if (remembered !== null && (await isFree(remembered))) return remembered;
  const start = createHash('sha256').update(project).digest().readUInt32BE(0) + offset;
  for (let i = 0; i < MAX_TRIES; i += 1) {
    const port = FIRST_PORT + ((start + i * 3) % PORT_RANGE);
    if (!taken.has(port) && (await isFree(port))) return port;
  }
  throw badConfig(
    `no free port between ${FIRST_PORT} and ${FIRST_PORT + PORT_RANGE}; name one with --ui-port and --engine-port`,
  );
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', ({ code }: NodeJS.ErrnoException) => {
      if (code === 'EADDRNOTAVAIL') reject(noLoopback());
      else resolve(false);
    });
    server.listen({ host: '127.0.0.1', port, exclusive: true }, () => server.close(() => resolve(true)));
  });
}

function noLoopback(): TemperError {
  return badConfig(
    'the local stack listens on 127.0.0.1, but this machine does not have that address (its loopback interface has IPv6 only); add it (ip addr add 127.0.0.1/8 dev lo), or name a Temporal server and an engine elsewhere (TEMPORAL_ADDRESS and engine.url)',
  );
}
