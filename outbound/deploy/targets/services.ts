/** Hosted services that targets call and `temper doctor` asks. Their own clients read the same variables. */
import { withoutSlash } from '../../../core/names/addresses.ts';
import { requireKey, type HttpCaller } from '../../../core/text/http.ts';

interface Service {
  readonly system: string;
  readonly keyVariable: string;
  readonly urlVariable: string;
  readonly url: string;
}

export const SERVICES = {
  huggingface: {
    system: 'the Hugging Face hub',
    keyVariable: 'HF_TOKEN',
    urlVariable: 'HF_ENDPOINT',
    url: 'https://huggingface.co',
  },
  together: {
    system: 'Together',
    keyVariable: 'TOGETHER_API_KEY',
    urlVariable: 'TOGETHER_BASE_URL',
    url: 'https://api.together.ai/v1',
  },
  fireworks: {
    system: 'Fireworks',
    keyVariable: 'FIREWORKS_API_KEY',
    urlVariable: 'FIREWORKS_BASE_URL',
    url: 'https://api.fireworks.ai',
  },
} as const satisfies Record<string, Service>;
export type ServiceName = keyof typeof SERVICES;

interface ServicePlace extends Pick<HttpCaller, 'fetch' | 'signal'> {
  readonly env: NodeJS.ProcessEnv;
}

export function serviceUrl(name: ServiceName, env: NodeJS.ProcessEnv): string {
  const { urlVariable, url } = SERVICES[name];
  return withoutSlash(env[urlVariable] || url);
}

/** BadConfig if the key is not set. */
export function serviceCaller(name: ServiceName, { env, fetch, signal }: ServicePlace): HttpCaller {
  const { system, keyVariable } = SERVICES[name];
  return { system, keyVariable, key: requireKey(env, keyVariable, system), fetch, signal };
}
