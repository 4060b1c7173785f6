/** What a hosted model is asked, and where. */
import { nameMaxTokens, type HostedModel } from '../../play/connections/providers.ts';

/** What the person says of hosted models; null leaves it to the agent. */
export interface AskedSettings {
  readonly temperature: number | null;
  readonly maxTokens: number | null;
}

/** The agent's own words, but for what the person asked for and for what this server calls otherwise. */
export function createRewrite(hosted: HostedModel, { temperature, maxTokens }: AskedSettings) {
  return (body: object): object => ({
    ...(temperature !== null && { temperature }),
    ...nameMaxTokens(hosted, body, maxTokens),
  });
}
