/** Address and key of a server that a command opens to people and programs, checked before anything is started. */
import { randomBytes } from 'node:crypto';
import { badConfig } from '../../core/contract/failures.ts';
import { isLoopback } from '../../core/names/addresses.ts';
import type { CommandEnvironment } from './command.ts';
import { checkAllowedHosts } from './listening.ts';

export interface KeyedPlace {
  readonly host: string;
  readonly port: number;
  /** Names that clients may use, besides those of loopback. */
  readonly hosts: readonly string[];
  readonly key: string;
  /** It was made for this start, and nobody knows it yet. */
  readonly isNewKey: boolean;
}

interface KeyedCommand {
  /** `temper serve`. */
  readonly command: string;
  readonly keyVariable: string;
  readonly defaultPort: number;
}

interface PlaceContext extends Pick<CommandEnvironment, 'env' | 'output'> {
  readonly flags: {
    readonly host: string | null;
    readonly port: number | null;
    readonly 'allow-host': readonly string[];
    readonly json: boolean;
  };
}

export const KEY_BYTES = 32;

export function planKeyedPlace(keyed: KeyedCommand, { flags, env, output }: PlaceContext): KeyedPlace {
  const host = flags.host ?? '127.0.0.1';
  const given = env[keyed.keyVariable] || null;
  if (given === null) checkNewKey(keyed, host, !flags.json && output.isTerminal);
  return {
    host,
    port: flags.port ?? keyed.defaultPort,
    hosts: checkAllowedHosts(host, flags['allow-host']),
    key: given ?? randomBytes(KEY_BYTES).toString('base64url'),
    isNewKey: given === null,
  };
}

function checkNewKey({ command, keyVariable }: KeyedCommand, host: string, canBeShown: boolean): void {
  const remedy = `export ${keyVariable}="$(openssl rand -base64 32)"`;
  if (!isLoopback(host))
    throw badConfig(
      `--host ${host} is open to other machines and needs a key in ${keyVariable}, which is not set; ${remedy}`,
    );
  if (!canBeShown)
    throw badConfig(`${command} shows a new key on a terminal only, and needs one in ${keyVariable} here; ${remedy}`);
}

/** Words of a command line with curl that send the key. */
export const bearerWords = (keyVariable: string): string => `-H "Authorization: Bearer $${keyVariable}"`;

/** Origin for clients on this machine; a wildcard address includes loopback. */
export function originOf({ host, port }: Pick<KeyedPlace, 'host' | 'port'>): string {
  const name = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  return `http://${name.includes(':') ? `[${name}]` : name}:${port}`;
}
