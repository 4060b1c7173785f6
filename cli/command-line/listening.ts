/** Addresses that servers of this machine listen on, and names that their clients may use. */
import { badConfig } from '../../core/contract/failures.ts';
import type { Flag } from '../../operations/flags.ts';

/** A name, or an address of IPv4 or IPv6 without brackets, and without a port. */
const HOST_NAME = /^([A-Za-z0-9][A-Za-z0-9._-]{0,252}|[0-9A-Fa-f]*:[0-9A-Fa-f:.]*)$/;
/** An unset variable of a shell leaves the empty one. */
const EVERY_ADDRESS = ['0.0.0.0', '::', ''];

export const ALLOW_HOST_FLAG = {
  kind: 'texts',
  form: { pattern: HOST_NAME, rule: 'a name or an address without port', example: 'gpu.example' },
  placeholder: 'NAME',
  description: 'host name that clients may use, besides --host and localhost; repeatable',
} satisfies Flag;

/** Flags of a command that opens a server to people and programs, who need a key. */
export function placeFlags({ keyVariable, defaultPort }: { keyVariable: string; defaultPort: number }) {
  return {
    host: {
      kind: 'text',
      form: { pattern: /^[\w.:-]+$/, rule: 'an address or a host name', example: '127.0.0.1' },
      placeholder: 'ADDRESS',
      description: `address to listen on; one that is not loopback needs ${keyVariable}`,
      default: '127.0.0.1',
    },
    port: { kind: 'port', minimum: 0, placeholder: 'N', description: `port to listen on [${defaultPort}]` },
    'allow-host': ALLOW_HOST_FLAG,
  } as const satisfies Record<string, Flag>;
}

/** Names that clients may use, besides those of loopback; `host`: null for loopback. */
export function checkAllowedHosts(host: string | null, allowed: readonly string[]): readonly string[] {
  if (host === null || !EVERY_ADDRESS.includes(host)) return host === null ? allowed : [host, ...allowed];
  if (allowed.length > 0) return allowed;
  throw badConfig(
    `--host ${host || "''"} must come with --allow-host, otherwise requests from other machines are refused; pass --allow-host and the name or address that they use`,
  );
}
