/** Where a server of this machine listens, and by which names its clients may call it. */
import type { Flag } from './command.ts';
import { UsageError } from './errors.ts';

/** A name, or an address of IPv4 or IPv6 without brackets. */
const HOST_NAME = /^([A-Za-z0-9][A-Za-z0-9._-]{0,252}|[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*)$/;
/** The empty one is what a variable of a shell that is not set leaves. */
const EVERY_ADDRESS = ['0.0.0.0', '::', ''];

export const ALLOW_HOST_FLAG = {
  kind: 'texts',
  form: { pattern: HOST_NAME, rule: 'a name or an address without port', example: 'gpu.example' },
  placeholder: 'NAME',
  description: 'host name that clients may use, besides --host and localhost; repeatable',
} satisfies Flag;

/** Names that clients may use, besides those of loopback; `host`: null for loopback. */
export function checkAllowedHosts(host: string | null, allowed: readonly string[]): readonly string[] {
  if (host === null || !EVERY_ADDRESS.includes(host)) return host === null ? allowed : [host, ...allowed];
  if (allowed.length > 0) return allowed;
  throw new UsageError(
    `--host ${host || "''"} must come with --allow-host, otherwise requests from other machines are refused; pass --allow-host and the name or address that they use`,
  );
}
