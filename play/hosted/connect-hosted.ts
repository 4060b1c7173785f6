/** Connections to hosted models: a pool for each address and key, kept for as long as the process lives. */
import {
  connectEngine,
  hostedAddress,
  type EngineAddress,
  type EngineConnection,
} from '../connections/engine-connection.ts';
import { readKey, type Environment, type NamedModel } from '../connections/providers.ts';

/** Throws if the model's key is missing. */
export type ConnectHosted = (model: NamedModel) => EngineConnection;

const connections = new Map<string, EngineConnection>();

/** By the keys of an environment. */
export function connectByKeys(env: Environment): ConnectHosted {
  return (model) => {
    const address = hostedAddress({ ...model, key: readKey(model.name, model.keyVariable, env) });
    const place = placeOf(address);
    const connection = connections.get(place) ?? connectEngine(address);
    connections.set(place, connection);
    return connection;
  };
}

function placeOf({ url, key, keyVariable = null }: EngineAddress): string {
  return JSON.stringify([url, key, keyVariable]);
}
