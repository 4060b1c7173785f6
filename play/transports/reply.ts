/** The little of a `Response` that clients read: the body is parsed once, and nothing is copied. */

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
