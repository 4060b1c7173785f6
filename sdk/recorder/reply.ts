/** The little of a `Response` that the openai client reads: the body is parsed once, and nothing is copied. */

const JSON_HEADERS = new Headers({ 'content-type': 'application/json' });

export function jsonReply(status: number, body: object): Response {
  const reply: Pick<Response, 'ok' | 'status' | 'statusText' | 'headers' | 'url' | 'body' | 'json' | 'text'> = {
    ok: status < 300,
    status,
    statusText: '',
    headers: JSON_HEADERS,
    url: '',
    body: null,
    json: () => Promise.resolve(body),
    text: () => Promise.resolve(JSON.stringify(body)),
  };
  return reply as Response;
}

/** The client raises its own error class for the status, with this message. */
export function errorReply(status: number, type: string, message: string): Response {
  return jsonReply(status, { error: { message, type, code: null, param: null } });
}
