/**
 * Hosted models: `provider/model`, or `https://host/v1#model` for any other server that speaks OpenAI's chat completions.
 * A key is found in the environment under its provider's usual name, and stands nowhere else.
 */
import { badConfig } from '../../core/contract/failures.ts';
import type { EngineAddress } from './engine-connection.ts';

export interface Provider {
  readonly name: string;
  /** Base of `/chat/completions`; the environment may override it, for a gateway of your own. */
  readonly baseUrl: string;
  readonly baseUrlVariable?: string;
  /** Null where no key is needed. */
  readonly keyVariable: string | null;
  /** Its answers say what they cost. */
  readonly reportsCost?: boolean;
  /** Nobody sends a bill. */
  readonly isFree?: boolean;
  /** OpenAI's newer models refuse `max_tokens`, others do not know the newer name. Null: as whoever asks writes it. */
  readonly maxTokensName: 'max_tokens' | 'max_completion_tokens' | null;
}

/** A model of a provider, or at an address of its own. */
export interface NamedModel extends Provider {
  /** The name that the user wrote. */
  readonly name: string;
  /** The server's name for it. */
  readonly model: string;
}

/** Whoever asks a model adds the key. */
export interface HostedModel extends NamedModel {
  readonly key: string | null;
}

export type Environment = Readonly<Record<string, string | undefined>>;

const PROVIDERS: readonly Provider[] = [
  { ...provider('openai', 'https://api.openai.com/v1'), maxTokensName: 'max_completion_tokens' },
  provider('anthropic', 'https://api.anthropic.com/v1'),
  provider('gemini', 'https://generativelanguage.googleapis.com/v1beta/openai'),
  { ...provider('openrouter', 'https://openrouter.ai/api/v1'), reportsCost: true },
  provider('together', 'https://api.together.xyz/v1'),
  provider('groq', 'https://api.groq.com/openai/v1'),
  provider('mistral', 'https://api.mistral.ai/v1'),
  provider('xai', 'https://api.x.ai/v1'),
  provider('deepseek', 'https://api.deepseek.com/v1'),
  { ...provider('ollama', 'http://127.0.0.1:11434/v1'), keyVariable: null, isFree: true },
];

export const PROVIDER_NAMES: readonly string[] = PROVIDERS.map(({ name }) => name);

function provider(name: string, baseUrl: string): Provider {
  const prefix = name.toUpperCase();
  return {
    name,
    baseUrl,
    baseUrlVariable: `${prefix}_BASE_URL`,
    keyVariable: `${prefix}_API_KEY`,
    maxTokensName: 'max_tokens',
  };
}

/** US dollars for a million tokens. */
export interface Price {
  readonly prompt: number;
  readonly completion: number;
}

/** Usage that a server reported; null if it did not. */
export interface Used {
  readonly promptTokens: number | null;
  readonly completionTokens: number | null;
  /** Cost that the server reports, in US dollars. */
  readonly cost: number | null;
}

/** Reads `usage` of an answer, which is unchecked. */
export function readUsed(usage: unknown): Used {
  const { prompt_tokens: prompt, completion_tokens: completion, cost } = (usage ?? {}) as Record<string, unknown>;
  return { promptTokens: asAmount(prompt), completionTokens: asAmount(completion), cost: asAmount(cost) };
}

function asAmount(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : null;
}

/** US dollars: as the person says, or as the server counts; null where nobody knows. Prices change: none is built in. */
export function costOf(
  { isFree = false, reportsCost = false }: Pick<Provider, 'isFree' | 'reportsCost'>,
  price: Price | null,
  { promptTokens, completionTokens, cost }: Used,
): number | null {
  if (price !== null && promptTokens !== null && completionTokens !== null)
    return (price.prompt * promptTokens + price.completion * completionTokens) / 1e6;
  if (isFree) return 0;
  return reportsCost ? cost : null;
}

export function findProvider(name: string): Provider | null {
  return PROVIDERS.find((each) => each.name === name) ?? null;
}

/** Null where the text names no hosted model; throws where it does and its key is missing. */
export function findHostedModel(text: string, env: Environment): HostedModel | null {
  const named = parseHostedModel(text, env);
  return named === null ? null : { ...named, key: readKey(text, named.keyVariable, env) };
}

/** The same without its key; the environment may name another address of its provider. */
export function parseHostedModel(text: string, env: Environment): NamedModel | null {
  if (/^https?:\/\//.test(text)) return parseUrl(text);
  const slash = text.indexOf('/');
  const found = slash < 0 ? null : findProvider(text.slice(0, slash));
  if (found === null) return null;
  const model = text.slice(slash + 1);
  if (model === '') throw badConfig(`${text} does not name a model; write ${found.name}/MODEL`);
  return withAddress({ ...found, name: text, model }, env);
}

/** The model at the address that the environment names for its provider: a gateway of your own. */
export function withAddress<M extends NamedModel>(model: M, env: Environment): M {
  const { baseUrlVariable: variable } = model;
  const own = variable === undefined ? null : readVariable(env, variable);
  return variable === undefined || own === null ? model : { ...model, baseUrl: checkBaseUrl(variable, own) };
}

/** The address of a hosted model. A bare host is completed; a URL with a path is an API's base as it is. */
export function hostedAddress(
  { baseUrl, key, keyVariable }: HostedModel,
  env: Environment = process.env,
): EngineAddress {
  const { organization, project } = accountOf(baseUrl, env);
  const headers = {
    ...(organization !== null && { 'openai-organization': organization }),
    ...(project !== null && { 'openai-project': project }),
  };
  return { url: baseUrl, key, keyVariable, isBaseUrl: new URL(baseUrl).pathname !== '/', headers };
}

/** The key that a variable holds; null where none is needed. `place`: where it is needed, for messages. */
export function readKey(model: string, variable: string | null, env: Environment, place = ''): string | null {
  if (variable === null) return null;
  const key = readVariable(env, variable);
  if (key !== null) return key;
  throw badConfig(`${model} needs a key in ${variable}, which is not set; export it${place}`);
}

/**
 * An address is shown in tables, reports and messages: what is secret in it would be, too. Its own words are not repeated
 * here for the same reason.
 */
export function checkBaseUrl(what: string, text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (
    url !== null &&
    /^https?:$/.test(url.protocol) &&
    [url.username, url.password, url.search, url.hash].every((part) => part === '')
  )
    return text;
  throw badConfig(
    `${what} must be an http(s) URL without user, password, query or fragment (it is shown to people)${told(text, url)}; pass one like https://api.openai.com/v1, and the key by an environment variable`,
  );
}

function told(text: string, url: URL | null): string {
  if (url === null) return /[@?#]/.test(text) ? '' : `, got ${JSON.stringify(text)}`;
  return `, got another one at ${url.host || url.protocol}`;
}

/** A limit of tokens, the agent's own or `wanted` in its place, under the name by which the model's server knows it. */
export function nameMaxTokens(
  { maxTokensName }: Pick<Provider, 'maxTokensName'>,
  body: object,
  wanted: number | null = null,
): object {
  const { max_tokens: old, max_completion_tokens: newer, ...rest } = body as Record<string, unknown>;
  const limit = wanted ?? newer ?? old;
  const asked = newer === undefined ? 'max_tokens' : 'max_completion_tokens';
  return limit === undefined ? rest : { ...rest, [maxTokensName ?? asked]: limit };
}

/**
 * Options of the official client for one address. By itself the client takes a key, an organization, a project and headers
 * from the environment, which are meant for OpenAI, and follows redirects with the prompt.
 */
export function clientFor(baseURL: string, key: string | null) {
  const apiKey = key ?? 'none';
  const { organization, project } = accountOf(baseURL, process.env);
  const own = {
    authorization: `Bearer ${apiKey}`,
    'openai-organization': organization,
    'openai-project': project,
  };
  const defaultHeaders = { ...withoutCustomHeaders(), ...own };
  return { baseURL, apiKey, adminAPIKey: null, organization, project, defaultHeaders, fetchOptions: NO_REDIRECT };
}

/** The organization and the project that OpenAI, and nobody else, is told. */
function accountOf(baseUrl: string, env: Environment) {
  const isOpenAI = /^https:\/\/([a-z-]+\.)?api\.openai\.com(\/|$)/i.test(baseUrl);
  return {
    organization: isOpenAI ? readVariable(env, 'OPENAI_ORG_ID') : null,
    project: isOpenAI ? readVariable(env, 'OPENAI_PROJECT_ID') : null,
  };
}

/** Clears each header that OPENAI_CUSTOM_HEADERS names: they may hold keys. */
function withoutCustomHeaders(): Record<string, null> {
  const lines = (process.env['OPENAI_CUSTOM_HEADERS'] ?? '').split('\n').filter((line) => line.includes(':'));
  return Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf(':')).trim().toLowerCase(), null]));
}

/** For `fetch`: prompts and keys go to the address that was named, never to one that an answer names. */
const NO_REDIRECT = { redirect: 'manual' } as const;

function parseUrl(text: string): NamedModel {
  const hash = text.indexOf('#');
  const [url, model] = hash < 0 ? [text, ''] : [text.slice(0, hash), text.slice(hash + 1)];
  if (URL.canParse(url)) checkBaseUrl('the address of a model', url);
  if (model === '' || !URL.canParse(url)) {
    const example = 'http://127.0.0.1:8000/v1#my-model';
    throw badConfig(`a model of another server must be URL#MODEL, got ${text}; write ${example}`);
  }
  return { name: text, model, baseUrl: url, keyVariable: null, maxTokensName: null };
}

/** An empty variable is none. */
function readVariable(env: Environment, name: string): string | null {
  return env[name] || null;
}
