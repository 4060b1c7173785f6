/** Connections to hosted models: one for each address and key, kept for as long as the process lives. */
import type { EngineAddress, EngineConnection } from './engine-connection.ts';
import { hostedAddress, readKey, type Environment, type HostedModel, type NamedModel } from './providers.ts';

/** Throws if the model's key is missing. */
export type ConnectHosted = (model: NamedModel) => EngineConnection;

const connections = new Map<string, EngineConnection>();

/** Connects with the keys of an environment. */
export function connectByKeys(env: Environment): ConnectHosted {
  return (model) => connectTo({ ...model, key: readKey(model.name, model.keyVariable, env) }, env);
}

export function connectTo(model: HostedModel, env: Environment = process.env): EngineConnection {
  return {
    url: model.baseUrl,
    keyVariable: model.keyVariable,
    post: async (body, options) => (await findConnection(hostedAddress(model, env))).post(body, options),
    close: () => Promise.resolve(),
  };
}

/** HTTP is loaded where a hosted model is asked: an agent's own copy of this module needs none of it. */
async function findConnection(address: EngineAddress): Promise<EngineConnection> {
  const { connectEngine } = await import('./engine-connection.ts');
  const place = JSON.stringify([address.url, address.key]);
  const connection = connections.get(place) ?? connectEngine(address);
  connections.set(place, connection);
  return connection;
}
