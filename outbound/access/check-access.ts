/** Whether trackers and targets of deployments answer and take our key: one call to each that changes nothing. */
import type { TrackerSettings } from '../../core/contract/outbound.ts';
import type { TraceSettings } from '../../core/contract/trace.ts';
import { badConfig, type TemperError } from '../../core/contract/failures.ts';
import { serviceCaller, serviceUrl, type ServiceName } from '../deploy/targets/services.ts';
import { callHttp, type HttpCaller, type HttpRequest } from '../../core/text/http.ts';
import { openMlflow } from '../track/mlflow.ts';
import { logRequest, trackioCaller, trackioUrl } from '../track/trackio.ts';
import { graphqlRequest, openWandbApi, VIEWER } from '../track/wandb-graphql.ts';
import { endpointOf, langfuseAccess, langfuseCaller } from '../trace/endpoint.ts';

export interface AccessPlace {
  readonly env: NodeJS.ProcessEnv;
  readonly fetch: typeof globalThis.fetch;
  readonly signal: AbortSignal;
}

/** A call, and what its answer says of the key. */
interface Access {
  readonly caller: HttpCaller;
  readonly request: HttpRequest;
  readonly isKeySent: boolean;
  readonly describe?: (json: unknown) => string | Refused;
}

interface Refused {
  readonly refused: string;
}

/** Null for one that needs no access: a file of this host. */
export async function checkTarget(
  settings: TrackerSettings | TraceSettings,
  place: AccessPlace,
): Promise<string | null> {
  return settings.kind === 'csv' ? null : checkAccess(accessOf(settings, place));
}

export function checkDeployTarget(name: ServiceName, place: AccessPlace): Promise<string> {
  return checkAccess({ caller: serviceCaller(name, place), isKeySent: true, ...SERVICE_ACCESS[name](place.env) });
}

/** Nothing asks again. */
const REMEDY = 'check its address and the network, then run temper doctor again';

async function checkAccess({ caller, request, isKeySent, describe = () => '' }: Access): Promise<string> {
  const { system, keyVariable } = caller;
  const { status, json } = await callHttp({ remedy: REMEDY, ...caller }, { ...request, expected: [401, 403] });
  const { host } = new URL(request.url);
  if (status === 401 || status === 403) throw refusal(system, keyVariable, { status, isKeySent });
  const said = describe(json);
  if (typeof said !== 'string') throw badConfig(`${said.refused}; set another key in ${keyVariable}`);
  return [`${host} answers`, ...(isKeySent ? [`and takes the key in ${keyVariable}`] : []), said].join(' ').trim();
}

function refusal(
  system: string,
  variable: string | null,
  { status, isKeySent }: { readonly status: number; readonly isKeySent: boolean },
): TemperError {
  if (!isKeySent) return badConfig(`${system} asks for a key (${status}); export it in ${variable ?? 'its variable'}`);
  const what = status === 401 ? 'refuses the key' : 'knows the key, but it lacks rights: that';
  return badConfig(`${system} ${what} in ${variable} (${status}); set another one`);
}

type Remote = Exclude<TrackerSettings, { kind: 'csv' }> | TraceSettings;

function accessOf(settings: Remote, place: AccessPlace): Access {
  if (settings.kind === 'wandb') return wandbAccess(settings, place);
  if (settings.kind === 'trackio') return trackioAccess(settings, place);
  if (settings.kind === 'langfuse') return langfuseProjects(settings, place);
  if (settings.kind === 'otlp' || settings.kind === 'weave') return emptyExport(settings, place);
  return mlflowAccess(settings, place);
}

function trackioAccess(settings: { readonly url: string | null }, place: AccessPlace): Access {
  const baseUrl = trackioUrl(settings, place.env);
  const caller = trackioCaller(baseUrl, place);
  return { caller, request: logRequest(caller, baseUrl, []), isKeySent: caller.key !== null };
}

/** No span: the empty message of the protocol. */
function emptyExport(settings: Extract<TraceSettings, { kind: 'otlp' | 'weave' }>, place: AccessPlace): Access {
  const { caller, url, headers } = endpointOf(settings, 'doctor', place.env, {}, place);
  const body = new Uint8Array();
  const request = { method: 'POST', url, body, headers: { ...headers, ...PROTOBUF } } as const;
  return { caller, request, isKeySent: Object.keys(headers).length > 0 };
}

const PROTOBUF = { 'content-type': 'application/x-protobuf' };

function wandbAccess(settings: { readonly baseUrl: string | null }, place: AccessPlace): Access {
  const api = openWandbApi(settings.baseUrl, place.env, place);
  return {
    caller: api.caller,
    request: graphqlRequest(api, VIEWER, {}),
    isKeySent: true,
    describe: (json) => {
      const { data } = (json ?? {}) as { data?: { viewer?: { username?: unknown } | null } | null };
      const name = data?.viewer?.username;
      if (typeof name === 'string') return `of ${name}`;
      return { refused: 'Weights & Biases knows no user of the key in WANDB_API_KEY' };
    },
  };
}

function mlflowAccess(settings: { readonly url: string | null }, place: AccessPlace): Access {
  const { caller, baseUrl, headers } = openMlflow(settings, place.env, place);
  const url = `${baseUrl}/api/2.0/mlflow/experiments/search`;
  return {
    caller,
    request: { method: 'POST', url, json: { max_results: 1 }, headers },
    isKeySent: caller.key !== null,
  };
}

function langfuseProjects(settings: { readonly url: string | null }, place: AccessPlace): Access {
  const { url, authorization } = langfuseAccess(place.env, settings.url);
  const headers = { authorization };
  return {
    caller: langfuseCaller(authorization, place),
    request: { url: `${url}/api/public/projects`, headers },
    isKeySent: true,
    describe: (json) => {
      const { data } = (json ?? {}) as { data?: { name?: unknown }[] };
      const name = data?.[0]?.name;
      return typeof name === 'string' ? `of the project ${name}` : '';
    },
  };
}

const SERVICE_ACCESS: Readonly<Record<ServiceName, (env: NodeJS.ProcessEnv) => Pick<Access, 'request' | 'describe'>>> =
  {
    huggingface: (env) => ({
      request: { url: `${serviceUrl('huggingface', env)}/api/whoami-v2` },
      describe: (json) => {
        const { name, auth } = (json ?? {}) as { name?: string; auth?: { accessToken?: { role?: unknown } } };
        if (auth?.accessToken?.role === 'read')
          return { refused: `the key of ${name ?? 'nobody'} may read alone, and a deployment writes` };
        return `of ${name ?? 'nobody'}`;
      },
    }),
    together: (env) => ({ request: { url: `${serviceUrl('together', env)}/jobs` } }),
    fireworks: (env) => ({ request: { url: `${serviceUrl('fireworks', env)}/v1/accounts` } }),
  };
