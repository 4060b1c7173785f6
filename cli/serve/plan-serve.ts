/** Address and key of `temper serve`, checked before anything is started. */
import { randomBytes } from 'node:crypto';
import { isLoopback } from '../../core/loopback.ts';
import { checkAllowedHosts } from '../command-line/listening.ts';
import { UsageError } from '../command-line/errors.ts';
import { DEFAULT_SERVE_PORT, type ServeContext } from './command.ts';

export const SERVE_KEY_VARIABLE = 'TEMPER_SERVE_KEY';

export interface ServePlace {
  readonly host: string;
  readonly port: number;
  /** Names that clients may use, besides those of loopback. */
  readonly hosts: readonly string[];
  readonly key: string;
  /** It was made for this start, and nobody knows it yet. */
  readonly isNewKey: boolean;
}

const KEY_BYTES = 32;
const EXPORT_KEY = `export ${SERVE_KEY_VARIABLE}="$(openssl rand -base64 32)"`;

export function planServe({ flags, env, output }: Pick<ServeContext, 'flags' | 'env' | 'output'>): ServePlace {
  const host = flags.host ?? '127.0.0.1';
  const given = env[SERVE_KEY_VARIABLE] || null;
  if (given === null) checkNewKey(host, !flags.json && output.isTerminal);
  return {
    host,
    port: flags.port ?? DEFAULT_SERVE_PORT,
    hosts: checkAllowedHosts(host, flags['allow-host']),
    key: given ?? randomBytes(KEY_BYTES).toString('base64url'),
    isNewKey: given === null,
  };
}

function checkNewKey(host: string, canBeShown: boolean): void {
  if (!isLoopback(host))
    throw new UsageError(
      `--host ${host} is open to other machines and needs a key in ${SERVE_KEY_VARIABLE}, which is not set; ${EXPORT_KEY}`,
    );
  if (!canBeShown)
    throw new UsageError(
      `temper serve shows a new key on a terminal only, and needs one in ${SERVE_KEY_VARIABLE} here; ${EXPORT_KEY}`,
    );
}
