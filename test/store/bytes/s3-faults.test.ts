/** A store in a bucket when things go wrong: credentials, buckets, servers that die, stop, or lose an answer. */
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { HeadObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';

import { TemperError } from '../../../core/contract/failures.ts';
import { openS3Store, type S3Store, type S3StoreOptions } from '../../../store/bytes/s3-store.ts';
import { BUCKET } from '../../s3-server.ts';
import { bytes, failureOf, text } from './failure-of.ts';
import { startLenientS3 } from './lenient-s3.ts';
import { Proxy } from './proxy.ts';
import { sharedS3 } from '../../shared-s3.ts';

const MIB = 1024 ** 2;
const PART_BYTES = 5 * MIB;

const server = await sharedS3();
afterEach(() => vi.unstubAllEnvs());

const open = (prefix: string, options: S3StoreOptions = {}): Promise<S3Store> =>
  openS3Store({ bucket: BUCKET, prefix }, options);

/** Everything that a log or a history could show of it. */
function shown(failure: Error): string {
  const cause = failure.cause as Error;
  return [failure.message, failure.stack, cause.message, cause.stack, JSON.stringify(cause)].join('\n');
}

test('more keys than one answer lists are all listed in order, all read at once, and all removed', async () => {
  const store = await open('many');
  const keys = Array.from({ length: 1050 }, (_, index) => `runs/${String(index).padStart(4, '0')}`);
  for (const key of keys) {
    mkdirSync(server.file(`many/${key}`), { recursive: true });
    writeFileSync(server.file(`many/${key}/x.json`), 'x');
  }
  const listed = async (): Promise<string[]> => {
    const found = [];
    for await (const key of store.list('runs')) found.push(key);
    return found;
  };
  expect(await listed()).toEqual(keys.map((key) => `${key}/`));
  const read = await Promise.all(keys.map((key) => store.read(`${key}/x.json`)));
  expect(new Set(read.map(text))).toEqual(new Set(['x']));
  await store.removeFolder('runs');
  expect(await listed()).toEqual([]);
});

test('a large blob goes up in parts and comes back whole', async () => {
  const store = await open('large', { partBytes: PART_BYTES });
  const content = randomBytes(12 * MIB + 5);
  const ref = await store.putBlob(content);
  const client = new S3Client({ forcePathStyle: true });
  const head = await client.send(new HeadObjectCommand({ Bucket: BUCKET, Key: `large/${ref.key}` }));
  expect(head.ETag).toMatch(/-3"$/);
  expect(Buffer.compare(await store.getBlob(ref), content)).toBe(0);
});

describe('what no repetition mends is BadConfig, with a remedy and without a secret', () => {
  const cases: [string, Record<string, string | undefined>, string, RegExp][] = [
    [
      'a wrong secret',
      { AWS_SECRET_ACCESS_KEY: 'no-such-secret' },
      BUCKET,
      /SignatureDoesNotMatch.*AWS_SECRET_ACCESS_KEY/,
    ],
    ['an unknown key', { AWS_ACCESS_KEY_ID: 'no-such-key' }, BUCKET, /does not know the access key.*AWS_ACCESS_KEY_ID/],
    ['a wrong bucket', {}, 'no-such-bucket', /NoSuchBucket.*create it/],
    ['another region', { AWS_REGION: 'eu-west-7' }, BUCKET, /AWS_REGION/],
    ['an empty region', { AWS_REGION: '' }, BUCKET, /set AWS_REGION/],
    ['no region', { AWS_REGION: undefined }, BUCKET, /no region is configured; set AWS_REGION/],
    ['an endpoint that is none', { AWS_ENDPOINT_URL: 'nonsense' }, BUCKET, /AWS_ENDPOINT_URL/],
  ];

  test.each(cases)('%s', async (_, env, bucket, message) => {
    for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
    vi.stubEnv('AWS_CONFIG_FILE', '/dev/null');
    const store = await openS3Store({ bucket, prefix: 'p' });
    const asked = [store.checkWritable(), store.publish('a.json', bytes('a')), store.read('a.json'), store.id()];
    for (const failure of await Promise.all(asked.map(failureOf))) {
      expect(failure).toMatchObject({ type: 'BadConfig' });
      expect(failure.message).toContain(`s3://${bucket}/p`);
      expect(failure.message).toMatch(message);
      expect(shown(failure)).not.toMatch(/no-such-secret|test-secret|no-such-key|test-access|Signature=/);
    }
    expect(await failureOf(store.putBlob(bytes('a')))).toMatchObject({ type: 'BadConfig' });
  });
});

test('the endpoint in a message has no user and no password', async () => {
  vi.stubEnv('AWS_ENDPOINT_URL', server.env.AWS_ENDPOINT_URL?.replace('//', '//user:hidden@'));
  const failure = await failureOf((await openS3Store({ bucket: 'no-such-bucket', prefix: '' })).id());
  expect(failure.message).toContain(`s3://no-such-bucket at ${server.env.AWS_ENDPOINT_URL}`);
  expect(shown(failure)).not.toContain('hidden');
});

test.each(['<html><body>none</body></html>', 'none'])(
  'a web server that says %s is told from an empty store',
  async (page) => {
    const web = createServer((_, response) => response.writeHead(404, { 'content-type': 'text/html' }).end(page));
    await once(web.listen(0, '127.0.0.1'), 'listening');
    vi.stubEnv('AWS_ENDPOINT_URL', `http://127.0.0.1:${(web.address() as AddressInfo).port}`);
    const store = await open('none');
    for (const each of [() => store.read('a.json'), () => store.putBlob(bytes('a')), () => store.checkWritable()])
      expect(await failureOf(each())).toMatchObject({ type: 'BadConfig' });
    web.close();
  },
);

test('a server that overlooks If-None-Match is refused, and a write that is contended, or whose winner is gone, is asked for again', async () => {
  const lenient = await startLenientS3();
  vi.stubEnv('AWS_ENDPOINT_URL', lenient.url);
  const store = await open('lenient');
  const refused = await failureOf(store.checkWritable());
  expect(refused).toMatchObject({ type: 'BadConfig' });
  expect(refused.message).toContain('conditional writes');
  lenient.answers.push(409, 409, 200);
  expect(await store.publish('contended', bytes('mine'))).toMatchObject({ created: true });
  lenient.answers.push(412, 404, 200);
  expect(await store.publish('removed', bytes('mine'))).toMatchObject({ created: true });
  // The first answer was lost: the write that is asked for again meets itself.
  await store.replace('lost', bytes('mine'));
  for (const [content, created] of [
    ['mine', true],
    ['other', false],
  ] as const) {
    lenient.answers.push(500, 412);
    const published = await store.publish('lost', bytes(content));
    expect([text(published.bytes), published.created]).toEqual(['mine', created]);
  }
  lenient.answers.push(...Array.from({ length: 20 }, (_, index) => (index % 2 === 0 ? 412 : 404)));
  expect((await failureOf(store.publish('unreadable', bytes('x')))).message).toContain('cannot be read');
  lenient.answers.splice(0);
  lenient.answers.push(500, 503, 200);
  await store.replace('stumbled', bytes('mine'));
  lenient.answers.push(...Array.from({ length: 20 }, () => 409));
  expect(await failureOf(store.publish('for-ever', bytes('x')))).toMatchObject({ type: 'StoreUnavailable' });
  await lenient.stop();
});

test('an upload in parts that fails is given up, and its own failure counts where giving up is refused', async () => {
  const asked: string[] = [];
  const refusing = createServer((request, response) => {
    asked.push(`${request.method}`);
    request.resume().on('end', () => {
      if (request.method === 'POST')
        return response.end('<InitiateMultipartUploadResult><UploadId>one</UploadId></InitiateMultipartUploadResult>');
      const [status, code] = request.method === 'DELETE' ? [403, 'AccessDenied'] : [500, 'InternalError'];
      return response.writeHead(status).end(`<Error><Code>${code}</Code></Error>`);
    });
  });
  await once(refusing.listen(0, '127.0.0.1'), 'listening');
  vi.stubEnv('AWS_ENDPOINT_URL', `http://127.0.0.1:${(refusing.address() as AddressInfo).port}`);
  const store = await open('refusing', { partBytes: PART_BYTES });
  const failure = await failureOf(store.replace('large.bin', randomBytes(12 * MIB)));
  expect(failure).toMatchObject({ type: 'StoreUnavailable' });
  expect(asked.at(-1)).toBe('DELETE');
  expect(asked).not.toContain('GET');
  refusing.closeAllConnections();
  refusing.close();
});

describe('a server that goes away', () => {
  const content = randomBytes(16 * MIB);
  const sha256 = createHash('sha256').update(content).digest('hex');
  const ref = { key: `blobs/${sha256}`, sha256, bytes: content.length };
  const timeouts = { connectMs: 1000, idleMs: 1000 };
  let proxy: Proxy;
  beforeEach(async () => {
    proxy = await Proxy.start(Number(new URL(server.env.AWS_ENDPOINT_URL ?? '').port));
    vi.stubEnv('AWS_ENDPOINT_URL', proxy.url);
  });
  afterEach(() => proxy.stop());

  /** Done, or a failure that Temporal repeats. */
  const settled = (doing: Promise<unknown>): Promise<string> =>
    doing.then(
      () => 'done',
      (error: unknown) => (error instanceof TemperError ? error.type : String(error)),
    );

  describe.each([
    ['in one piece', 64 * MIB],
    ['in parts', PART_BYTES],
  ])('killed while a blob goes up %s', (kind, partBytes) => {
    test('and back at once: nothing half-written is seen, and the blob gets there', async () => {
      const prefix = `up-${partBytes}`;
      const store = await open(prefix, { partBytes, timeouts });
      const passed = proxy.passed('up', 8 * MIB);
      const putting = settled(store.putBlob(content));
      await passed;
      await server.kill();
      expect(existsSync(server.file(`${prefix}/${ref.key}`))).toBe(false);
      await server.start();
      expect(await putting).toMatch(/^(done|StoreUnavailable)$/);
      expect(await store.putBlob(content)).toEqual(ref);
      expect(Buffer.compare(await store.getBlob(ref), content)).toBe(0);
    });

    test('and away for good: it is StoreUnavailable, and later nothing is there', async () => {
      const prefix = `lost-${partBytes}`;
      const store = await open(prefix, { partBytes, timeouts });
      const passed = proxy.passed('up', 8 * MIB);
      const failing = failureOf(store.putBlob(content));
      await passed;
      await server.kill();
      expect(await failing).toMatchObject({ type: 'StoreUnavailable' });
      await server.start();
      expect((await failureOf(store.getBlob(ref))).message).toContain('is missing');
    });
  });

  test('killed while a blob comes down, and back at once: the blob comes whole', async () => {
    const store = await open('down', { timeouts });
    await store.putBlob(content);
    const passed = proxy.passed('down', 5 * MIB);
    const getting = store.getBlob(ref).then((got) => (Buffer.compare(got, content) === 0 ? 'whole' : 'other bytes'));
    const outcome = settled(getting.then((how) => expect(how).toBe('whole')));
    await passed;
    await server.kill();
    await server.start();
    expect(await outcome).toMatch(/^(done|StoreUnavailable)$/);
    expect(Buffer.compare(await store.getBlob(ref), content)).toBe(0);
  });

  test('killed while a blob comes down, and away for good: it is StoreUnavailable', async () => {
    const store = await open('down', { timeouts });
    await store.putBlob(content);
    const held = proxy.hold('down', 5 * MIB);
    const failing = failureOf(store.getBlob(ref));
    await held;
    await server.kill();
    proxy.letGo();
    expect(await failing).toMatchObject({ type: 'StoreUnavailable' });
    await server.start();
  });

  test('frozen in the middle of a download: it is StoreUnavailable, and once thawed all is well', async () => {
    const store = await open('down', { timeouts });
    await store.putBlob(content);
    // The proxy lets no more than this through, so that the download cannot end before the server is frozen.
    const held = proxy.hold('down', 5 * MIB);
    const failing = failureOf(store.getBlob(ref));
    await held;
    server.process.kill('SIGSTOP');
    proxy.letGo();
    const failure = await failing;
    server.process.kill('SIGCONT');
    expect(failure).toMatchObject({ type: 'StoreUnavailable' });
    expect(failure.message).toContain('took too long');
    expect(Buffer.compare(await store.getBlob(ref), content)).toBe(0);
  });

  test('frozen before it is asked: every request ends, typed', async () => {
    const store = await open('frozen', { timeouts, partBytes: PART_BYTES });
    server.process.kill('SIGSTOP');
    const asked = [
      store.read('a.json'),
      store.publish('a.json', bytes('a')),
      store.putBlob(bytes('a')),
      store.replace('a.bin', content),
      store.removeFolder('runs'),
      store.checkWritable(),
    ];
    const failures = await Promise.all(asked.map(failureOf));
    server.process.kill('SIGCONT');
    for (const failure of failures) expect(failure).toMatchObject({ type: 'StoreUnavailable' });
  });

  test('with the answer to a publish: the write is found to be its own', async () => {
    const store = await open('answers', { timeouts });
    void proxy.passed('down', 1).then(() => proxy.cut());
    const published = await store.publish('runs/a/run.json', bytes('mine'));
    expect(text(published.bytes)).toBe('mine');
    expect(text((await store.publish('runs/a/run.json', bytes('other'))).bytes)).toBe('mine');
  });
});
