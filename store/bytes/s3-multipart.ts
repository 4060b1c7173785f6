/** A large object, in parts: it is there once all of them are, and not before. */
import { AbortMultipartUploadCommand, type S3Client } from '@aws-sdk/client-s3';
import { Upload } from '@aws-sdk/lib-storage';

export async function uploadInParts(
  client: S3Client,
  object: { Bucket: string; Key: string },
  bytes: Uint8Array,
  partBytes: number,
): Promise<void> {
  const params = { ...object, Body: bytes, ChecksumAlgorithm: 'CRC32' as const };
  const upload = new Upload({ client, params, partSize: partBytes, leavePartsOnError: true });
  try {
    await upload.done();
  } catch (error) {
    // The library's own abort would hide the failure behind its own, for which there may be no permission.
    const { uploadId: UploadId } = upload;
    if (UploadId !== undefined)
      await client.send(new AbortMultipartUploadCommand({ ...object, UploadId })).catch(() => undefined);
    throw error;
  }
}
