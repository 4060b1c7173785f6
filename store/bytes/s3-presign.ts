/** An address of an object in a bucket that works without credentials, for a while: it is a key itself. */
import { GetObjectCommand } from '@aws-sdk/client-s3';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';

import { createS3Client, S3_TIMEOUTS } from './s3-client.ts';

/** `uri` is `s3://BUCKET/PREFIX`, as `openStore` takes it. */
export async function presignObject(uri: string, key: string, seconds: number): Promise<string> {
  const [bucket = '', ...names] = uri.slice('s3://'.length).split('/');
  const client = await createS3Client(S3_TIMEOUTS);
  try {
    const command = new GetObjectCommand({ Bucket: bucket, Key: [...names, key].join('/') });
    return await getSignedUrl(client, command, { expiresIn: seconds });
  } finally {
    client.destroy();
  }
}
