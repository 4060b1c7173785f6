import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';

import { openS3Store } from '../../../store/bytes/s3-store.ts';
import { openStore } from '../../../store/bytes/open-store.ts';
import { BUCKET } from '../../s3-server.ts';
import { bytes, failureOf, text } from './failure-of.ts';
import { storeSuite } from './store-suite.ts';
import { sharedS3 } from '../../shared-s3.ts';
import { temporaryFolder } from '../../temporary-folder.ts';

const server = await sharedS3();
const spoolFolder = temporaryFolder();

describe('a store in a bucket', () => {
  storeSuite(() => {
    const prefix = `under/${randomUUID()}`;
    return {
      open: () => openStore(`s3://${BUCKET}/${prefix}`, { spoolFolder }),
      file: (key) => server.file(join(prefix, key)),
    };
  });
});

test('a store may have a whole bucket, and its address is written in one way', async () => {
  const store = await openStore(`s3://${BUCKET}/`);
  expect(store.uri).toBe(`s3://${BUCKET}`);
  expect((await openStore(`s3://${BUCKET}/a/b/`)).uri).toBe(`s3://${BUCKET}/a/b`);
  await store.replace('top.json', bytes('1'));
  expect(text(await (await openStore(`s3://${BUCKET}`)).read('top.json'))).toBe('1');
});

test('a profile may say all: server, region and credentials', async () => {
  const { AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY } = server.env;
  const file = join(spoolFolder, 'aws-config');
  const lines = [
    '[profile temper]',
    `region = ${AWS_REGION}`,
    `endpoint_url = ${AWS_ENDPOINT_URL}`,
    `aws_access_key_id = ${AWS_ACCESS_KEY_ID}`,
    `aws_secret_access_key = ${AWS_SECRET_ACCESS_KEY}`,
  ];
  writeFileSync(file, lines.join('\n'));
  for (const name of Object.keys(server.env)) vi.stubEnv(name, undefined);
  vi.stubEnv('AWS_CONFIG_FILE', file);
  vi.stubEnv('AWS_PROFILE', 'temper');
  const store = await openStore(`s3://${BUCKET}/by-profile`);
  await store.checkWritable();
  vi.unstubAllEnvs();
  expect(await (await openStore(`s3://${BUCKET}/by-profile`)).id()).toBe(await store.id());
});

test('a blob is measured without being read, and removed', async () => {
  const store = await openS3Store({ bucket: BUCKET, prefix: 'measured' });
  const ref = await store.putBlob(bytes('abc'));
  expect(await store.blobBytes(ref)).toBe(3);
  await store.removeBlob(ref);
  await store.removeBlob(ref);
  expect(await store.blobBytes(ref)).toBeNull();
});

test.each(['s3://', 's3://a', 's3://bucket/../x', 's3://bucket//x', 's3://key:secret@bucket/x'])(
  'the address %s is refused, and no secret is shown',
  async (uri) => {
    const failure = await failureOf(openStore(uri));
    expect(failure).toMatchObject({ type: 'BadConfig' });
    expect(failure.message).not.toContain('secret@');
  },
);
