import { expect, test } from 'vitest';

import { callHttp } from '../../outbound/http.ts';

test('a key that a long refusal repeats is hidden before the text is cut', async () => {
  const key = 'a-key-of-some-length';
  const answer = new Response(JSON.stringify({ message: `${'x'.repeat(290)}${key}` }), { status: 400 });
  const caller = {
    system: 'Somebody',
    keyVariable: 'SOME_KEY',
    key,
    fetch: () => Promise.resolve(answer),
    signal: AbortSignal.timeout(10_000),
  };
  const refused = callHttp(caller, { url: 'http://host/path?token=secret' });
  await expect(refused).rejects.toThrow(
    /^Somebody refused the request \(GET http:\/\/host\/path answered 400: x+\[key\]\)$/,
  );
});
