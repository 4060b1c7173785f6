/** The HTTP server of `temper serve`: its endpoints, and limits of bodies. Dialects write the answers. */
import { decodeEscapes } from '../../core/text/decode.ts';
import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  type ModelReply,
  type ModelRequest,
  DEFAULT_DIALECT,
  findDialect,
} from '../../play/dialects/answer-request.ts';
import {
  BodyRoom,
  HttpRefusal,
  isSameSecret,
  keyOf,
  refusalOf,
  writeReply,
} from '../../play/transports/http-server.ts';
import {
  checkMethod,
  openKeyedServer,
  pathOf,
  type Access,
  type KeyedServer,
  type KeyedServerOptions,
} from '../../play/transports/keyed-server.ts';
import { FEEDBACK_PATH, SERVE_KEY_HEADER } from './recording/feedback-endpoint.ts';

export interface ServingOptions extends Omit<KeyedServerOptions, 'command'> {
  readonly key: string;
  /** Names that `/v1/models` lists. */
  readonly models: readonly string[];
  /** Answers of `/v1/responses`, by id. */
  readonly kept: { answer(id: string): object | null; forget(id: string): void };
  /** Limit over all concurrent requests; 512 MiB by default. */
  readonly maxHeldBytes?: number;
  /** Absent: nothing is recorded, so there is nothing to rate. */
  readonly feedback?: FeedbackOptions;
  /** Rejects if the client has gone away. */
  readonly answer: (request: ModelRequest) => Promise<ModelReply>;
}

export interface FeedbackOptions {
  /** Opens feedback, and nothing else; null: nothing does. */
  readonly key: string | null;
  /** Resolves to the body of the answer. */
  readonly answer: (body: string, takesNames: boolean) => Promise<object>;
}

const MAX_HELD_BYTES = 512 * 1024 ** 2;

export function openServingHttp(options: ServingOptions): Promise<KeyedServer> {
  const place = { ...options, command: 'temper serve' };
  const handler = new RequestHandler(options);
  return openKeyedServer(place, {
    answer: (request, response, access) => handler.answer(request, response, access),
    refuse: (error, request, response) =>
      writeReply(response, refuse(pathOf(request), refusalOf(error, place.command))),
  });
}

class RequestHandler {
  readonly #options: ServingOptions;
  readonly #bodies: BodyRoom;

  constructor(options: ServingOptions) {
    this.#options = options;
    this.#bodies = new BodyRoom(options.maxHeldBytes ?? MAX_HELD_BYTES);
  }

  async answer(request: IncomingMessage, response: ServerResponse, access: Access): Promise<void> {
    const path = pathOf(request);
    access.checkHost(request);
    const { feedback } = this.#options;
    const isRating = path === FEEDBACK_PATH && feedback !== undefined;
    const found = isRating ? await this.#rate(request, access, feedback) : this.#find(request, path, access);
    if (found !== null) return writeReply(response, json(found));
    const gone = new AbortController();
    response.on('close', () => gone.abort());
    await this.#bodies.hold(request, async (asked) =>
      writeReply(response, await this.#options.answer({ ...asked, path, signal: gone.signal })),
    );
  }

  /** Null if the model must be asked. */
  #find(request: IncomingMessage, path: string, access: Access): object | null {
    if (path === '/health') return { status: 'ok' };
    access.checkKey(request);
    const { method = 'GET' } = request;
    const [, place, id] = /^\/v1\/(models|responses)(?:\/([^/]+))?$/.exec(path) ?? [];
    if (place === 'models') return this.#model(method, id);
    if (place === 'responses' && id !== undefined) return this.#kept(request, id);
    if (findDialect(path) === null)
      throw new HttpRefusal(404, `no endpoint ${path.slice(0, 80)}; see temper serve --help`, 'not_found');
    checkMethod(path, method, ['POST']);
    return null;
  }

  async #rate(request: IncomingMessage, access: Access, { key, answer }: FeedbackOptions): Promise<object> {
    if (key === null)
      throw new HttpRefusal(403, 'feedback needs a key of its own; start temper serve with TEMPER_FEEDBACK_KEY', 'key');
    if (!isSameSecret(keyOf(request.headers), key))
      throw new HttpRefusal(
        401,
        'the key must be that of feedback, in TEMPER_FEEDBACK_KEY of temper serve (its other key opens no feedback); send it as "Authorization: Bearer KEY" or "x-api-key: KEY"',
        'invalid_api_key',
      );
    access.keep(request);
    checkMethod(FEEDBACK_PATH, request.method ?? 'GET', ['POST']);
    const { [SERVE_KEY_HEADER]: serveKey } = request.headers;
    const takesNames = typeof serveKey === 'string' && isSameSecret(serveKey, this.#options.key);
    let told: object = {};
    await this.#bodies.hold(request, async ({ body }) => void (told = await answer(body, takesNames)));
    return told;
  }

  /** All of them without an id. */
  #model(method: string, id: string | undefined): object {
    checkMethod('/v1/models', method, ['GET']);
    const { models } = this.#options;
    if (id === undefined) return listOf(models);
    const name = decodeEscapes(id);
    if (models.includes(name)) return describeModel(name);
    const rule = `model must be ${models.join(' or ')}, got ${JSON.stringify(name.slice(0, 80))}`;
    throw new HttpRefusal(404, `${rule}; change it`, 'model_not_found');
  }

  #kept({ method = 'GET', url = '' }: IncomingMessage, id: string): object {
    checkMethod('/v1/responses/ID', method, ['GET', 'DELETE']);
    if (url.includes('stream=true'))
      throw new HttpRefusal(
        400,
        'stream must be absent (an answer that is kept is told whole), got true; leave it out',
      );
    const { kept } = this.#options;
    const answer = kept.answer(id);
    if (answer === null)
      throw new HttpRefusal(
        404,
        `Response with id ${JSON.stringify(id.slice(0, 80))} not found. temper serve keeps the newest ones, unless store is false`,
        'not_found',
      );
    if (method === 'GET') return answer;
    kept.forget(id);
    return { id, object: 'response', deleted: true };
  }
}

/** Lists models as both OpenAI and Anthropic do. */
function listOf(models: readonly string[]): object {
  const ends = { first_id: models[0] ?? null, last_id: models.at(-1) ?? null };
  return { object: 'list', data: models.map(describeModel), has_more: false, ...ends };
}

function describeModel(id: string): object {
  const epoch = new Date(0).toISOString();
  return { id, object: 'model', created: 0, owned_by: 'temper', type: 'model', display_name: id, created_at: epoch };
}

function json(body: object, status = 200): ModelReply {
  return { status, headers: { 'content-type': 'application/json' }, json: body };
}

function refuse(path: string, { status, error }: HttpRefusal): ModelReply {
  const refused = json((findDialect(path) ?? DEFAULT_DIALECT).writeError(error), status);
  return status === 429 ? { ...refused, headers: { ...refused.headers, 'retry-after': '1' } } : refused;
}
