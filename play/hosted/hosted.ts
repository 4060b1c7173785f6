/** `context.hosted`: another model beside the policy, on the same terms as the policy for every client. */
import { badConfig, TemperError } from '../../core/contract/failures.ts';
import { parseHostedModel, PROVIDER_NAMES, type NamedModel, type Price } from '../connections/providers.ts';
import type { Recorder } from '../recorder/recorder.ts';
import { createModelClient, type ModelClient } from '../transports/model-client.ts';
import { connectByKeys, type ConnectHosted } from '../connections/connect-hosted.ts';
import type { HostedCalls } from './hosted-calls.ts';

export interface HostedOptions {
  /** US dollars, to show what it costs; both or none. */
  usdPerMillionInput?: number;
  usdPerMillionOutput?: number;
  /** Name of the environment variable that holds the key; by default the provider's own, and none for an address. */
  keyVariable?: string;
}

export type Hosted = (model: string, options?: HostedOptions) => ModelClient;

/** Nothing goes there: calls are answered in the process. A client that was not given `fetch` finds nobody. */
const BASE_URL = 'http://hosted-model.invalid/v1';

interface HostedParts {
  readonly recorder: Recorder;
  readonly calls: HostedCalls;
  /** Default: with the keys of this process's environment. */
  readonly connect?: ConnectHosted | undefined;
  /** Role that the models play; absent for `context.hosted`. */
  readonly role?: string;
}

export function createHosted({ recorder, calls, connect = connectByKeys(process.env), role }: HostedParts): Hosted {
  return (name, options = {}) => {
    try {
      const named = withKeyVariable(parseName(name), options.keyVariable);
      const price = priceOf(options);
      const answerer = calls.open({
        name,
        named,
        price,
        connection: connect(named),
        ...(role !== undefined && { role }),
      });
      const owner = role === undefined ? `hosted('${name}')` : `roles.${role}`;
      return createModelClient(answerer, { model: named.model, baseURL: BASE_URL, owner });
    } catch (error) {
      // Every attempt would fail of it: the run's affair, not the attempt's.
      if (error instanceof TemperError) recorder.ending.abort(error);
      throw error;
    }
  };
}

function parseName(name: unknown): NamedModel {
  const named = typeof name === 'string' ? parseHostedModel(name, process.env) : null;
  if (named !== null) return named;
  throw badConfig(
    `context.hosted must be given provider/model, the provider one of ${PROVIDER_NAMES.join(', ')}, got ${JSON.stringify(name)}; pass such a name, or URL#MODEL for any other server`,
  );
}

function withKeyVariable(named: NamedModel, keyVariable: string | undefined): NamedModel {
  return keyVariable === undefined ? named : { ...named, keyVariable };
}

const OPTIONS = ['usdPerMillionInput', 'usdPerMillionOutput', 'keyVariable'];

function priceOf(options: HostedOptions): Price | null {
  const unknown = Object.keys(options).find((name) => !OPTIONS.includes(name));
  if (unknown !== undefined)
    throw badConfig(
      `context.hosted has the options ${OPTIONS.join(', ')}, got ${unknown}; correct its name, or remove it`,
    );
  const { usdPerMillionInput: prompt, usdPerMillionOutput: completion } = options;
  if (prompt === undefined && completion === undefined) return null;
  if (isPrice(prompt) && isPrice(completion)) return { prompt, completion };
  throw badConfig(
    `usdPerMillionInput and usdPerMillionOutput of context.hosted must both be numbers of at least 0, got ${String(prompt)} and ${String(completion)}; pass both, or none`,
  );
}

function isPrice(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0;
}
