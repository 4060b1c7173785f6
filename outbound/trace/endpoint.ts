/** Addresses at which each kind of target takes traces, with its headers and attributes of the resource. */
import { decodeEscapes } from '../../core/text/decode.ts';
import { withoutSlash } from '../../core/names/addresses.ts';
import type { TraceSettings } from '../../core/contract/trace.ts';
import { badConfig } from '../../core/contract/failures.ts';
import { requireKey, type HttpCaller } from '../../core/text/http.ts';
import type { TargetMemory } from '../target.ts';
import { findOrMakeExperiment, openMlflow } from '../track/mlflow.ts';
import type { Attributes } from './otlp/span.ts';

type Calling = Pick<HttpCaller, 'fetch' | 'signal'>;

export interface TraceEndpoint {
  readonly caller: HttpCaller;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly resource: Attributes;
}

/** `memory`: what `lookUp` found. */
export function endpointOf(
  settings: TraceSettings,
  agent: string,
  env: NodeJS.ProcessEnv,
  memory: TargetMemory,
  calling: Calling,
): TraceEndpoint {
  if (settings.kind === 'otlp') return otlpEndpoint(settings, env, calling);
  if (settings.kind === 'langfuse') return langfuseEndpoint(settings, env, calling);
  if (settings.kind === 'weave') return weaveEndpoint(settings, agent, env, calling);
  return mlflowEndpoint(settings, env, memory, calling);
}

/** Ids that the server gives, to be remembered. */
export async function lookUp(
  settings: TraceSettings,
  agent: string,
  env: NodeJS.ProcessEnv,
  calling: Calling,
): Promise<TargetMemory> {
  if (settings.kind !== 'mlflow-traces') return {};
  const name = settings.experiment ?? (env['MLFLOW_EXPERIMENT_NAME'] || agent);
  return { experimentId: await findOrMakeExperiment(openMlflow(settings, env, calling), name) };
}

type Of<Kind extends TraceSettings['kind']> = Extract<TraceSettings, { kind: Kind }>;

function otlpEndpoint({ url }: Of<'otlp'>, env: NodeJS.ProcessEnv, calling: Calling): TraceEndpoint {
  const general = env['OTEL_EXPORTER_OTLP_ENDPOINT'] || 'http://127.0.0.1:4318';
  const found = url ?? (env['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'] || `${withoutSlash(general)}/v1/traces`);
  const headers = parseHeaders(env['OTEL_EXPORTER_OTLP_TRACES_HEADERS'] || env['OTEL_EXPORTER_OTLP_HEADERS'] || '');
  const of = { system: 'the OpenTelemetry collector', keyVariable: 'OTEL_EXPORTER_OTLP_HEADERS' };
  return { caller: callerOf(of, headers, calling), url: found, headers, resource: {} };
}

/** Sends headers of its own in the place of a key; none of their values stands in a message. */
function callerOf(
  of: Pick<HttpCaller, 'system' | 'keyVariable'>,
  headers: Readonly<Record<string, string>>,
  calling: Calling,
): HttpCaller {
  const secrets = Object.values(headers).flatMap((value) => [value, ...value.split(' ')]);
  return { ...of, key: null, secrets, ...calling };
}

/** `name=value,name=value`, percent-encoded, as OpenTelemetry's specification has it. */
function parseHeaders(text: string): Record<string, string> {
  const pairs = text.split(',').filter((pair) => pair.trim() !== '');
  return Object.fromEntries(
    pairs.map((pair, index) => {
      const at = pair.indexOf('=');
      if (at > 0) return [pair.slice(0, at).trim().toLowerCase(), decodeEscapes(pair.slice(at + 1).trim())];
      throw badConfig(
        `OTEL_EXPORTER_OTLP_HEADERS must be NAME=VALUE,NAME=VALUE, pair ${index + 1} has no =; correct the variable`,
      );
    }),
  );
}

export interface LangfuseAccess {
  /** Without a slash at its end. */
  readonly url: string;
  readonly authorization: string;
}

/** By the variables that Langfuse's own SDKs read; `url` from the settings, if they name one. */
export function langfuseAccess(env: NodeJS.ProcessEnv, url: string | null = null): LangfuseAccess {
  const { LANGFUSE_PUBLIC_KEY: publicKey, LANGFUSE_SECRET_KEY: secretKey } = env;
  if (!publicKey || !secretKey)
    throw badConfig(
      'Langfuse needs the keys of a project in LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY, at least one is not set; copy them from the settings of the project',
    );
  const base = url ?? (env['LANGFUSE_BASE_URL'] || env['LANGFUSE_HOST'] || 'https://cloud.langfuse.com');
  return { url: withoutSlash(base), authorization: `Basic ${btoa(`${publicKey}:${secretKey}`)}` };
}

function langfuseEndpoint(settings: Of<'langfuse'>, env: NodeJS.ProcessEnv, calling: Calling): TraceEndpoint {
  const { url, authorization } = langfuseAccess(env, settings.url);
  return {
    caller: langfuseCaller(authorization, calling),
    url: `${url}/api/public/otel/v1/traces`,
    headers: { authorization, 'x-langfuse-ingestion-version': '4' },
    resource: settings.environment === null ? {} : { 'langfuse.environment': settings.environment },
  };
}

export function langfuseCaller(authorization: string, calling: Calling): HttpCaller {
  const keyVariable = 'LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY';
  return callerOf({ system: 'Langfuse', keyVariable }, { authorization }, calling);
}

function weaveEndpoint(
  { entity, project, url }: Of<'weave'>,
  agent: string,
  env: NodeJS.ProcessEnv,
  calling: Calling,
): TraceEndpoint {
  const key = requireKey(env, 'WANDB_API_KEY', 'Weave');
  const base = url ?? (env['WF_TRACE_SERVER_URL'] || 'https://trace.wandb.ai');
  const team = entity ?? env['WANDB_ENTITY'];
  if (!team)
    throw badConfig(
      'weave needs the team or user that owns the project, none is set; pass weaveTraces({ entity }), or set WANDB_ENTITY',
    );
  const headers = { 'wandb-api-key': key };
  return {
    caller: callerOf({ system: 'Weave', keyVariable: 'WANDB_API_KEY' }, headers, calling),
    url: `${withoutSlash(base)}/agents/otel/v1/traces`,
    headers,
    resource: { 'wandb.entity': team, 'wandb.project': project ?? (env['WANDB_PROJECT'] || agent) },
  };
}

function mlflowEndpoint(
  settings: Of<'mlflow-traces'>,
  env: NodeJS.ProcessEnv,
  { experimentId }: TargetMemory,
  calling: Calling,
): TraceEndpoint {
  const { caller, baseUrl, headers } = openMlflow(settings, env, calling);
  return {
    caller,
    url: `${baseUrl}/v1/traces`,
    headers: { ...headers, 'x-mlflow-experiment-id': experimentId ?? '0' },
    resource: {},
  };
}
