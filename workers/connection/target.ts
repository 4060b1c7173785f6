/** Which Temporal server is configured. Reading it does not load the client. */
import { loadClientConfigProfile } from '@temporalio/envconfig';
import { badConfig, type TemperError } from '../../core/contract/failures.ts';

export interface TemporalTarget {
  readonly address: string;
  readonly namespace: string;
}

/** Server of TEMPORAL_ADDRESS or of a profile in `temporal.toml`; null if neither names one. */
export function configuredTarget(env: NodeJS.ProcessEnv = process.env): TemporalTarget | null {
  const variables = definedVariables(env);
  try {
    const { address, namespace } = loadClientConfigProfile({ overrideEnvVars: variables });
    return address ? { address, namespace: namespace ?? 'default' } : null;
  } catch (cause) {
    throw unreadableProfile(cause);
  }
}

export function unreadableProfile(cause: unknown): TemperError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return badConfig(
    `the Temporal profile could not be read (${reason}); fix temporal.toml or the TEMPORAL_* variables`,
    { cause },
  );
}

export function definedVariables(env: NodeJS.ProcessEnv): Record<string, string> {
  return Object.fromEntries(Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined));
}
