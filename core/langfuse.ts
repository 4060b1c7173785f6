/** How Langfuse is reached: the variables that its own SDKs read. */
import { TemperError } from './failures.ts';

type Environment = Readonly<Record<string, string | undefined>>;

export interface LangfuseAccess {
  /** Without a slash at its end. */
  readonly url: string;
  readonly authorization: string;
}

/** `url` from the settings, if they name one. */
export function langfuseAccess(env: Environment, url: string | null = null): LangfuseAccess {
  const { LANGFUSE_PUBLIC_KEY: publicKey, LANGFUSE_SECRET_KEY: secretKey } = env;
  if (!publicKey || !secretKey)
    throw new TemperError(
      'BadConfig',
      'Langfuse needs the keys of a project in LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY, at least one is not set; copy them from the settings of the project',
    );
  const base = url ?? (env['LANGFUSE_BASE_URL'] || env['LANGFUSE_HOST'] || 'https://cloud.langfuse.com');
  return { url: base.replace(/\/+$/, ''), authorization: `Basic ${btoa(`${publicKey}:${secretKey}`)}` };
}
