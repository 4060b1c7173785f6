/** Fireworks, from the types of its Python SDK 1.2.30, which are generated from its OpenAPI. */
import { z } from 'zod';

import { Refused, startStandIn, type Route, type StandIn, type StandInOptions } from '../stand-in.ts';

const CreateModel = z.strictObject({
  modelId: z.string().regex(/^[a-z0-9-]{1,63}$/),
  model: z.strictObject({
    kind: z.literal('HF_PEFT_ADDON'),
    displayName: z.string().max(63),
    description: z.string().max(999),
    peftDetails: z.strictObject({
      baseModel: z.string().startsWith('accounts/'),
      r: z.int().min(4).max(64),
      targetModules: z.array(z.string()).min(1),
    }),
  }),
});
const UploadEndpoint = z.strictObject({ filenameToSize: z.record(z.string(), z.string().regex(/^\d+$/)) });
const LoadLora = z.strictObject({
  model: z.string(),
  deployment: z.string(),
  displayName: z.string(),
  public: z.literal(false),
});

/** A model of this name is refused, with the key in the message. */
export const ECHOED = 'echoed';

interface FireworksModel {
  readonly name: string;
  readonly description: string;
  state: 'UPLOADING' | 'READY';
  sizes: Readonly<Record<string, string>>;
  readonly files: Map<string, Buffer>;
}
interface Loaded {
  readonly model: string;
  readonly deployment: string;
  readonly isReplacing: boolean;
  asked: number;
}

export interface FireworksStandIn extends StandIn {
  readonly models: readonly FireworksModel[];
  readonly loaded: readonly Loaded[];
}

export async function startFireworks(
  options: Pick<StandInOptions, 'key' | 'fault' | 'hold'>,
): Promise<FireworksStandIn> {
  const models: FireworksModel[] = [];
  const loaded: Loaded[] = [];
  const of = (rest: string): RegExp => new RegExp(`^/v1/accounts/me/${rest}$`);
  const modelOf = (id: string | undefined): FireworksModel => {
    const model = models.find(({ name }) => name === `accounts/me/models/${id}`);
    if (model === undefined) throw new Refused(404, 'model not found');
    return model;
  };
  const describe = ({ name, description, state }: FireworksModel) => ({
    name,
    description,
    state,
    status: { code: 'OK' },
  });
  const routes: Route[] = [
    {
      method: 'POST',
      path: of('models'),
      answer({ json, headers }) {
        const { modelId, model } = json(CreateModel);
        // A server that repeats what it was sent.
        if (modelId === ECHOED) throw new Refused(400, `cannot create it (${headers.authorization})`);
        const name = `accounts/me/models/${modelId}`;
        if (models.some((each) => each.name === name)) throw new Refused(409, 'model exists');
        const made: FireworksModel = {
          name,
          description: model.description,
          state: 'UPLOADING',
          sizes: {},
          files: new Map(),
        };
        models.push(made);
        return { json: describe(made) };
      },
    },
    { method: 'GET', path: of('models/([\\w-]+)'), answer: ({ parts }) => ({ json: describe(modelOf(parts[0])) }) },
    {
      method: 'POST',
      path: of('models/([\\w-]+):getUploadEndpoint'),
      answer({ json, parts, headers }) {
        const model = modelOf(parts[0]);
        model.sizes = json(UploadEndpoint).filenameToSize;
        const address = (file: string) =>
          `http://${headers.host}/storage/${parts[0]}/${file}?Signature=secret-of-storage`;
        const urls = Object.fromEntries(Object.keys(model.sizes).map((file) => [file, address(file)]));
        return { json: { filenameToSignedUrls: urls } };
      },
    },
    {
      method: 'PUT',
      path: /^\/storage\/([\w-]+)\/(.+)$/,
      isOpen: true,
      answer({ body, parts, headers }) {
        const model = modelOf(parts[0]);
        const size = model.sizes[parts[1]!];
        if (headers['x-goog-content-length-range'] !== `${size},${size}` || String(body.length) !== size)
          throw new Refused(400, 'another size than was announced');
        model.files.set(parts[1]!, body);
        return {};
      },
    },
    {
      method: 'GET',
      path: of('models/([\\w-]+):validateUpload'),
      answer({ parts }) {
        const model = modelOf(parts[0]);
        const missing = Object.keys(model.sizes).find((file) => !model.files.has(file));
        if (missing !== undefined || model.files.size === 0)
          throw new Refused(400, `${missing ?? 'every file'} is missing`);
        model.state = 'READY';
        return { json: { warnings: [] } };
      },
    },
    {
      method: 'GET',
      path: of('deployedModels'),
      // The first page has those of others.
      answer: ({ query }) =>
        query.get('pageToken') === null
          ? { json: { deployedModels: [{ model: 'other', deployment: 'other' }], nextPageToken: 'second' } }
          : {
              json: {
                deployedModels: loaded.map((each) => {
                  each.asked += 1;
                  const state = each.asked > 1 ? 'DEPLOYED' : 'DEPLOYING';
                  return { model: each.model, deployment: each.deployment, state, status: { code: 'OK' } };
                }),
              },
            },
    },
    {
      method: 'POST',
      path: of('deployedModels'),
      answer({ json, query }) {
        const { model, deployment } = json(LoadLora);
        if (modelOf(model.split('/').at(-1)).state !== 'READY') throw new Refused(400, 'the model is not ready');
        if (loaded.some((each) => each.model === model && each.deployment === deployment))
          throw new Refused(409, 'loaded');
        loaded.push({ model, deployment, isReplacing: query.get('replaceMergedAddon') === 'true', asked: 0 });
        return { json: { model, deployment, state: 'DEPLOYING' } };
      },
    },
  ];
  return Object.assign(await startStandIn({ ...options, routes }), { models, loaded });
}
