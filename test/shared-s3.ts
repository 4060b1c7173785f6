import { startS3Server, type S3Server } from './s3-server.ts';
import { atItsEnd } from './temporary-folder.ts';

/** The S3 server of a file's tests. */
export async function sharedS3(): Promise<S3Server> {
  const server = await startS3Server();
  atItsEnd(() => server.stop());
  return server;
}
