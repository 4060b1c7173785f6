/** Uploads in parts that their writers did not complete, and when objects were written last. */
import {
  AbortMultipartUploadCommand,
  ListMultipartUploadsCommand,
  ListPartsCommand,
  type ListMultipartUploadsCommandInput,
  type ListPartsCommandInput,
  type S3Client,
} from '@aws-sdk/client-s3';

import type { StoredObject } from '../store.ts';

interface Upload {
  Bucket: string;
  Key: string;
  UploadId: string;
}

/** A missing time counts as now. */
export function modifiedAtMs({ LastModified }: { LastModified?: Date | undefined }): number {
  return LastModified?.getTime() ?? Infinity;
}

/** Listings say it to the millisecond, answers about one object to the second. */
export function isLater(foundMs: number, describedMs: number): boolean {
  return foundMs >= Math.floor(describedMs / 1000 + 1) * 1000;
}

/** With what was uploaded of each; a large one may take hours, and is as old as its newest part. */
export async function* listUploads(
  client: S3Client,
  input: ListMultipartUploadsCommandInput,
): AsyncGenerator<StoredObject, null> {
  let marker: Pick<ListMultipartUploadsCommandInput, 'KeyMarker' | 'UploadIdMarker'> = {};
  for (;;) {
    const page = await client.send(new ListMultipartUploadsCommand({ ...input, ...marker }));
    for (const { Key, UploadId, Initiated } of page.Uploads ?? []) {
      if (Key === undefined || UploadId === undefined || input.Bucket === undefined) continue;
      const parts = await describeParts(client, { Bucket: input.Bucket, Key, UploadId });
      const began = modifiedAtMs({ LastModified: Initiated });
      if (parts !== null)
        yield { key: Key, uploadId: UploadId, bytes: parts.bytes, modifiedAtMs: Math.max(began, parts.newestMs) };
    }
    if (!page.IsTruncated) return null;
    marker = { KeyMarker: page.NextKeyMarker, UploadIdMarker: page.NextUploadIdMarker };
  }
}

/** False if it was completed or given up, or has another part since then. */
export async function abortUnchanged(client: S3Client, upload: Upload, describedMs: number): Promise<boolean> {
  const parts = await describeParts(client, upload);
  if (parts === null || parts.newestMs > describedMs) return false;
  await client.send(new AbortMultipartUploadCommand(upload));
  return true;
}

/** Null: the upload is gone. */
async function describeParts(client: S3Client, upload: Upload): Promise<{ bytes: number; newestMs: number } | null> {
  const found = { bytes: 0, newestMs: 0 };
  let marker: Pick<ListPartsCommandInput, 'PartNumberMarker'> = {};
  try {
    for (;;) {
      // Not the SDK's own pages: some servers name a next one after the last.
      const page = await client.send(new ListPartsCommand({ ...upload, ...marker }));
      for (const part of page.Parts ?? []) {
        found.bytes += part.Size ?? 0;
        found.newestMs = Math.max(found.newestMs, modifiedAtMs(part));
      }
      if (!page.IsTruncated) return found;
      marker = { PartNumberMarker: page.NextPartNumberMarker };
    }
  } catch (error) {
    if (error instanceof Error && error.name === 'NoSuchUpload') return null;
    throw error;
  }
}
