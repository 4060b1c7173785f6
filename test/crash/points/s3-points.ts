/** Points before and after each write to a bucket, by the names that they have on a disk. */
import { S3Client } from '@aws-sdk/client-s3';
import { around, kindOf } from './file-points.ts';

interface Command {
  readonly constructor: { readonly name: string };
  readonly input: { readonly Key?: string };
}

type Send = () => Promise<unknown>;

/** Tries that the SDK makes by itself are one request here. */
export function wrapRequests(wrap: (command: string, key: string, send: Send) => Promise<unknown>): void {
  const send = Reflect.get(S3Client.prototype, 'send') as (...args: unknown[]) => Promise<unknown>;
  Object.assign(S3Client.prototype, {
    send(this: S3Client, command: Command, ...rest: unknown[]): Promise<unknown> {
      return wrap(command.constructor.name, `/${command.input.Key ?? ''}`, () => send.call(this, command, ...rest));
    },
  });
}

export function layS3Points(): void {
  wrapRequests((command, key, send) => {
    if (command === 'DeleteObjectsCommand') return around('uploads', send);
    const isWrite = command === 'PutObjectCommand' || command === 'CompleteMultipartUploadCommand';
    return isWrite ? around(kindOf(key), send) : send();
  });
}
