/** How W&B Weave's trace server is reached: the variables that W&B's own clients read. */
import { TemperError } from './failures.ts';

type Environment = Readonly<Record<string, string | undefined>>;

export interface WeaveAccess {
  /** Without a slash at its end. */
  readonly url: string;
  readonly key: string;
}

export function weaveAccess(env: Environment, url: string | null = null): WeaveAccess {
  const { WANDB_API_KEY: key } = env;
  if (!key)
    throw new TemperError(
      'BadConfig',
      'Weave needs a key in WANDB_API_KEY, it is not set; copy one from wandb.ai/settings',
    );
  const base = url ?? (env['WF_TRACE_SERVER_URL'] || 'https://trace.wandb.ai');
  return { url: base.replace(/\/+$/, ''), key };
}
