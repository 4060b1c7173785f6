/** A client for S3. Endpoint, region and credentials are the SDK's business: environment, profile, role. */
import { GetObjectCommand, S3Client } from '@aws-sdk/client-s3';

export interface S3Timeouts {
  connectMs: number;
  /** A connection on which nothing moves for so long has failed. */
  idleMs: number;
}

export const S3_TIMEOUTS: S3Timeouts = { connectMs: 5000, idleMs: 30_000 };
/** Attempts with the SDK's pauses: an unreachable server fails within a second, a silent one within two minutes. */
const ATTEMPTS = 3;
/** For as many requests as are sent at once, each of which may be an upload in parts. */
const AGENT = { maxSockets: 160 };

export async function createS3Client({ connectMs, idleMs }: S3Timeouts): Promise<S3Client> {
  // The SDK's version is pinned, and this one does support the oldest Node that Temper does.
  process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= 'true';
  const client = new S3Client({
    maxAttempts: ATTEMPTS,
    retryMode: 'standard',
    requestHandler: { connectionTimeout: connectMs, socketTimeout: idleMs, httpAgent: AGENT, httpsAgent: AGENT },
  });
  // A server of one's own has seldom a host name for every bucket.
  client.config.forcePathStyle = (await configuredEndpoint(client)) !== null;
  return client;
}

/** Address for messages, without a user's name or password; null for AWS itself. */
export async function describeEndpoint(client: S3Client): Promise<string | null> {
  const endpoint = await configuredEndpoint(client);
  if (endpoint === null) return null;
  return URL.canParse(endpoint) ? new URL(endpoint).origin : 'an endpoint that is not a URL';
}

/** AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, or the profile's. */
async function configuredEndpoint({ config }: S3Client): Promise<string | null> {
  return (await config.serviceConfiguredEndpoint?.()) ?? null;
}

/**
 * An address of an object that works without credentials, for a while: it is a key itself. `uri` is `s3://BUCKET/PREFIX`, as
 * `openStore` takes it.
 */
export async function presignObject(uri: string, key: string, seconds: number): Promise<string> {
  const { getSignedUrl } = await import('@aws-sdk/s3-request-presigner');
  const [bucket = '', ...names] = uri.slice('s3://'.length).split('/');
  const client = await createS3Client(S3_TIMEOUTS);
  try {
    const command = new GetObjectCommand({ Bucket: bucket, Key: [...names, key].join('/') });
    return await getSignedUrl(client, command, { expiresIn: seconds });
  } finally {
    client.destroy();
  }
}
