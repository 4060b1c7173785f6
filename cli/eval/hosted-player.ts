/** What a hosted model is asked, and where. */
import type { EngineAddress } from '../../play/connections/engine-connection.ts';
import type { HostedModel } from '../../play/connections/providers.ts';

/** What the person says of hosted models; null leaves it to the agent. */
export interface AskedSettings {
  readonly temperature: number | null;
  readonly maxTokens: number | null;
}

/** A bare host is completed; what has a path is an API's base as it stands. */
export function hostedAddress({ baseUrl, key, keyVariable }: HostedModel): EngineAddress {
  return { url: baseUrl, key, keyVariable, isBaseUrl: new URL(baseUrl).pathname !== '/' };
}

/** The agent's own words, but for what the person asked for and for what this server calls otherwise. */
export function createRewrite({ maxTokensName }: HostedModel, { temperature, maxTokens }: AskedSettings) {
  return (body: object): object => {
    const { max_tokens: old, max_completion_tokens: newer, ...rest } = body as Record<string, unknown>;
    const limit = maxTokens ?? newer ?? old;
    return {
      ...(temperature !== null && { temperature }),
      ...rest,
      ...(limit !== undefined && { [maxTokensName]: limit }),
    };
  };
}
