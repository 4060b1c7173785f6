/** A large object, in parts: it is there once all of them are, and not before. */
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  UploadPartCommand,
  type CompletedPart,
  type S3Client,
} from '@aws-sdk/client-s3';
import pLimit from 'p-limit';

const PARALLEL_PARTS = 4;

interface Upload {
  Bucket: string;
  Key: string;
  UploadId: string;
}

export async function uploadInParts(
  client: S3Client,
  object: { Bucket: string; Key: string },
  bytes: Uint8Array,
  partBytes: number,
): Promise<void> {
  const create = new CreateMultipartUploadCommand({ ...object, ChecksumAlgorithm: 'CRC32' });
  const { UploadId } = await client.send(create);
  if (UploadId === undefined) throw new Error('the server did not start a multipart upload');
  const upload = { ...object, UploadId };
  try {
    const Parts = await uploadParts(client, upload, bytes, partBytes);
    await client.send(new CompleteMultipartUploadCommand({ ...upload, MultipartUpload: { Parts } }));
  } catch (error) {
    // What stays of it is litter that nobody sees; the failure is what counts.
    await client.send(new AbortMultipartUploadCommand(upload)).catch(() => undefined);
    throw error;
  }
}

async function uploadParts(
  client: S3Client,
  upload: Upload,
  bytes: Uint8Array,
  partBytes: number,
): Promise<CompletedPart[]> {
  const limit = pLimit({ concurrency: PARALLEL_PARTS, rejectOnClear: true });
  const count = Math.ceil(bytes.length / partBytes);
  const parts = Array.from({ length: count }, (_, index) =>
    limit(async () => {
      const Body = bytes.subarray(index * partBytes, (index + 1) * partBytes);
      const part = { ...upload, PartNumber: index + 1, Body, ChecksumAlgorithm: 'CRC32' as const };
      const { ETag, ChecksumCRC32 } = await client.send(new UploadPartCommand(part));
      return { PartNumber: index + 1, ETag, ChecksumCRC32 };
    }),
  );
  try {
    return await Promise.all(parts);
  } catch (error) {
    // A part that arrives after the upload was given up would stay for ever.
    limit.clearQueue();
    await Promise.allSettled(parts);
    throw error;
  }
}
