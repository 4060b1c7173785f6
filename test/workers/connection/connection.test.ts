import { createSecureServer, createServer as createPlainServer, type SecureServerOptions } from 'node:http2';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { expect, it, vi } from 'vitest';
import { connectClient, patiently } from '../../../workers/connection/connection.ts';
import { configuredTarget } from '../../../workers/connection/target.ts';
import { openStack } from '../local-stack/stack-harness.ts';
import { atItsEnd, temporaryFolder } from '../../temporary-folder.ts';

const noProfile = { TEMPORAL_CONFIG_FILE: `${tmpdir()}/there-is-none.toml` };

it('uses no server that nobody named', () => {
  expect(configuredTarget(noProfile)).toBeNull();
  expect(configuredTarget({ ...noProfile, TEMPORAL_ADDRESS: 'h:1', TEMPORAL_NAMESPACE: 'n' })).toEqual({
    address: 'h:1',
    namespace: 'n',
  });
});

const project = temporaryFolder();

// Both wait for all of their time, and may do so together.
it.concurrent('fails within fifteen seconds where a named server refuses, and starts nothing', async () => {
  const env = { ...process.env, ...noProfile, TEMPORAL_ADDRESS: '127.0.0.1:9' };
  const startedAt = Date.now();
  await expect(openStack(project, { env })).rejects.toMatchObject({
    type: 'BadConfig',
    message:
      'no Temporal server answers at 127.0.0.1:9 (TEMPORAL_ADDRESS or temporal.toml); start one with temporal server start-dev --port 9, or remove the setting to let Temper start its own server',
  });
  expect(Date.now() - startedAt).toBeLessThan(15_000);
});

it.concurrent('fails within fifteen seconds where a named server says nothing', async () => {
  const server = createServer(() => undefined).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as { port: number };
  const startedAt = Date.now();
  await expect(connectClient({ address: `127.0.0.1:${port}`, namespace: 'default' }, noProfile)).rejects.toMatchObject({
    type: 'BadConfig',
  });
  expect(Date.now() - startedAt).toBeLessThan(15_000);
  server.close();
});

it('asks a silent server again, and tells any other failure at once', async () => {
  const silent = Object.assign(new Error('14 UNAVAILABLE'), { code: 14, details: '', metadata: {} });
  let asked = 0;
  const ask = () =>
    (asked += 1) < 3 ? Promise.reject(new Error('wrapped', { cause: silent })) : Promise.resolve('answer');
  const silences: number[] = [];
  expect(await patiently(ask, { limitMs: 10_000, onSilence: (sinceMs) => silences.push(sinceMs) })).toBe('answer');
  expect(silences).toHaveLength(2);
  await expect(patiently(() => Promise.reject(silent), { limitMs: 0 })).rejects.toThrow('UNAVAILABLE');
  await expect(patiently(() => Promise.reject(new Error('no such run')), { limitMs: null })).rejects.toThrow(
    'no such run',
  );
});

const pem = (label: string, base64: string) => `-----BEGIN ${label}-----\n${base64}\n-----END ${label}-----\n`;
/** Of these tests alone: signed by itself, for 127.0.0.1, until 2126. */
const KEY = pem(
  'PRIVATE KEY',
  'MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgnOaErAvWGOp3iX+lHu6AOfxrok5+Jy4Sx1VDwgUUopChRANCAASNFtMnjabMeGLG/moFj3+uXNCC6HpMnZvboNPVy35ICZs15/wnglt9TqOeJnW70tywPX6PqgiiguB0+FNXrazo',
);
const CERTIFICATE = pem(
  'CERTIFICATE',
  'MIIBhTCCASygAwIBAgIUPDxmQMKFiPniPXwyThghW2cETUQwCgYIKoZIzj0EAwIwDzENMAsGA1UEAwwEdGVzdDAgFw0yNjExMjkwOTAxMDdaGA8yMTI2MTEwNTA5MDEwN1owDzENMAsGA1UEAwwEdGVzdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABI0W0yeNpsx4Ysb+agWPf65c0ILoekydm9ug09XLfkgJmzXn/CeCW31Oo54mdbvS3LA9fo+qCKKC4HT4U1etrOijZDBiMB0GA1UdDgQWBBRgdkEYJp9/SFRNI1X4JsCdges8IDAfBgNVHSMEGDAWgBRgdkEYJp9/SFRNI1X4JsCdges8IDAPBgNVHRMBAf8EBTADAQH/MA8GA1UdEQQIMAaHBH8AAAEwCgYIKoZIzj0EAwIDRwAwRAIgIkygOswDC/zyu9merLQlV0YOrL904P6JbtrDzy8OKpUCIDw+RKk94itLXDNT6iakOFNVDIiNeBrhBsO7b+fzVXUT',
);
const MUTUAL = { key: KEY, cert: CERTIFICATE, ca: CERTIFICATE, requestCert: true };
const TRUST = { TEMPORAL_TLS_SERVER_CA_CERT_DATA: CERTIFICATE };

/** A Temporal server that answers each call with a status, and no message. */
async function startServer(statusOf: (path: string) => number, tls: SecureServerOptions | null): Promise<string> {
  const server = tls === null ? createPlainServer() : createSecureServer(tls);
  server.on('stream', (stream, { ':path': path = '' }) => {
    const status = statusOf(path);
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': status, 'grpc-message': 'as told' }));
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
    stream.end(status === 0 ? Buffer.alloc(5) : undefined);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atItsEnd(() => server.close());
  return `127.0.0.1:${(server.address() as { port: number }).port}`;
}

const BAD = { TEMPORAL_TLS_CLIENT_CERT_DATA: 'x', TEMPORAL_TLS_CLIENT_KEY_DATA: 'x' };

it.concurrent.each([
  ['TLS that nobody asked for', 0, MUTUAL, {}, '(it takes TLS alone, and none is configured); set TEMPORAL_TLS='],
  ['a missing certificate', 0, MUTUAL, TRUST, 'certificate required); set TEMPORAL_TLS=true, or the TEMPORAL'],
  ['a server that nobody vouches for', 0, MUTUAL, { TEMPORAL_TLS: 'true' }, '(self-signed certificate)'],
  ['a server without TLS', 0, null, TRUST, 'no TLS connection to the Temporal server at 127.0.0.1:'],
  ['a broken certificate', 0, MUTUAL, { ...TRUST, ...BAD }, 'no TLS connection to the Temporal server at'],
  ['a missing file', 0, MUTUAL, { TEMPORAL_TLS_CLIENT_CERT_PATH: '/none' }, 'could not be read (ENOENT'],
  ['a key that is refused', 16, null, {}, 'refused the request (as told); check TEMPORAL_API_KEY'],
  ['a key without rights', 7, null, {}, 'refused the request (as told); check TEMPORAL_API_KEY'],
])('tells %s from a server that is silent', async (_, status, tls, env, message) => {
  const target = { address: await startServer(() => status, tls), namespace: 'default' };
  await expect(connectClient(target, { ...noProfile, ...env })).rejects.toMatchObject({
    type: 'BadConfig',
    message: expect.stringContaining(message) as string,
  });
});

it('connects with the certificate that the server requires', async () => {
  const target = { address: await startServer(() => 0, MUTUAL), namespace: 'default' };
  const own = { TEMPORAL_TLS_CLIENT_CERT_DATA: CERTIFICATE, TEMPORAL_TLS_CLIENT_KEY_DATA: KEY };
  await (await connectClient(target, { ...noProfile, ...TRUST, ...own })).close();
});

it('closes after a retry that was due: its error is that of the call, and nothing is thrown beside it', async () => {
  let asked = 0;
  const statusOf = (path: string) => (path.endsWith('/GetSystemInfo') ? 0 : (asked++, 14));
  const target = { address: await startServer(statusOf, null), namespace: 'default' };
  const client = await connectClient(target, noProfile);
  const calling = client.connection.workflowService.listNamespaces({}).catch((error: unknown) => error);
  await vi.waitUntil(() => asked > 0);
  await client.close();
  expect(await calling).toMatchObject({ code: 14, details: 'as told' });
});
