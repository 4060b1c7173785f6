/** An address of this machine that no web page can find or reach, for servers that ask for no key. */
import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';
import { listen } from '../../play/transports/http-server.ts';

export interface PrivateAddress {
  readonly host: string;
  readonly port: number;
}

/** Null if this system has no loopback address but 127.0.0.1. */
export async function findPrivateAddress(): Promise<PrivateAddress | null> {
  const byte = () => randomInt(1, 255);
  // macOS has no other address in 127.0.0.0/8. No name can lead to an address with a zone.
  const hosts = [`127.${byte()}.${byte()}.${byte()}`, 'fe80::1%lo0'];
  for (const host of hosts) {
    const port = await freePortAt(host);
    if (port !== null) return { host, port };
  }
  return null;
}

async function freePortAt(host: string): Promise<number | null> {
  const server = createServer();
  const port = await listen(server, { host, port: 0 }).catch(() => null);
  server.close();
  return port;
}
