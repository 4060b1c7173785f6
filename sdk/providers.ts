/**
 * Hosted models: `provider/model`, or `https://host/v1#model` for any other server that speaks OpenAI's chat completions.
 * A key is found in the environment under its provider's usual name, and stands nowhere else.
 */
import { TemperError } from '../core/failures.ts';

export interface Provider {
  readonly name: string;
  /** Where `/chat/completions` is found; the environment may say otherwise, for a gateway of one's own. */
  readonly baseUrl: string;
  readonly baseUrlVariable: string;
  /** Null where no key is needed. */
  readonly keyVariable: string | null;
  /** Its answers say what they cost. */
  readonly tellsCost?: boolean;
  /** Nobody sends a bill. */
  readonly isFree?: boolean;
  /** OpenAI's newer models refuse `max_tokens`, others do not know the newer name. */
  readonly maxTokensName: 'max_tokens' | 'max_completion_tokens';
}

export interface HostedModel extends Pick<
  Provider,
  'baseUrl' | 'keyVariable' | 'maxTokensName' | 'tellsCost' | 'isFree'
> {
  /** As the person wrote it. */
  readonly name: string;
  /** As its server calls it. */
  readonly model: string;
  readonly key: string | null;
}

type Environment = Readonly<Record<string, string | undefined>>;

const PROVIDERS: readonly Provider[] = [
  { ...provider('openai', 'https://api.openai.com/v1'), maxTokensName: 'max_completion_tokens' },
  provider('anthropic', 'https://api.anthropic.com/v1'),
  provider('gemini', 'https://generativelanguage.googleapis.com/v1beta/openai'),
  { ...provider('openrouter', 'https://openrouter.ai/api/v1'), tellsCost: true },
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

/** What a server counted; null where it did not say. */
export interface Used {
  readonly promptTokens: number | null;
  readonly completionTokens: number | null;
  /** As the server tells it, in US dollars. */
  readonly cost: number | null;
}

/** US dollars: as the person says, or as the server counts; null where nobody knows. Prices change: none is built in. */
export function costOf(
  { isFree = false, tellsCost = false }: Pick<Provider, 'isFree' | 'tellsCost'>,
  price: Price | null,
  { promptTokens, completionTokens, cost }: Used,
): number | null {
  if (price !== null && promptTokens !== null && completionTokens !== null)
    return (price.prompt * promptTokens + price.completion * completionTokens) / 1e6;
  if (isFree) return 0;
  return tellsCost ? cost : null;
}

export function findProvider(name: string): Provider | null {
  return PROVIDERS.find((each) => each.name === name) ?? null;
}

/** Null where the text names no hosted model; throws where it does and its key is missing. */
export function findHostedModel(text: string, env: Environment): HostedModel | null {
  if (/^https?:\/\//.test(text)) return parseUrl(text);
  const slash = text.indexOf('/');
  const found = slash < 0 ? null : findProvider(text.slice(0, slash));
  if (found === null) return null;
  const model = text.slice(slash + 1);
  if (model === '') throw new TemperError('BadConfig', `${text} names no model; write ${found.name}/MODEL`);
  const { baseUrlVariable, ...rest } = found;
  const baseUrl = readVariable(env, baseUrlVariable) ?? found.baseUrl;
  return { ...rest, name: text, model, baseUrl, key: readKey(text, found.keyVariable, env) };
}

/** The key that a variable holds; null where none is needed. */
export function readKey(model: string, variable: string | null, env: Environment): string | null {
  if (variable === null) return null;
  const key = readVariable(env, variable);
  if (key !== null) return key;
  throw new TemperError('BadConfig', `${model} needs a key in ${variable}, which is not set; export it`);
}

function parseUrl(text: string): HostedModel {
  const hash = text.indexOf('#');
  const [url, model] = hash < 0 ? [text, ''] : [text.slice(0, hash), text.slice(hash + 1)];
  if (model === '' || !URL.canParse(url)) {
    const example = 'http://127.0.0.1:8000/v1#my-model';
    throw new TemperError('BadConfig', `a model of another server must be URL#MODEL, got ${text}; write ${example}`);
  }
  return { name: text, model, baseUrl: url, key: null, keyVariable: null, maxTokensName: 'max_tokens' };
}

/** An empty variable is none. */
export function readVariable(env: Environment, name: string): string | null {
  return env[name] || null;
}
