/** A folder of a bucket in PEFT's format: files are write-once, and the manifest, which names them by hash, is the last. */
import type { DeployOptions } from '../../../core/contract/deploy.ts';
import { TemperError } from '../../../core/contract/failures.ts';
import { encodeJson } from '../../../store/bytes/json.ts';
import { openStore } from '../../../store/bytes/open-store.ts';
import { hashBytes } from '../../../store/bytes/sha256.ts';
import type { Made, RecordedDeployment } from '../../../store/records/production/deployments.ts';
import type { Store } from '../../../store/store.ts';
import { CARD } from './files.ts';
import type { DeployFile, DeployTarget, StageContext } from './target.ts';

export const s3Target: DeployTarget = {
  name: 's3',
  stages: () => [{ name: 'upload', run: upload }],
  address: () => null,
  verify,
};

const bucketOf = ({ options }: Pick<RecordedDeployment, 'options'>): string => (options as DeployOptions<'s3'>).bucket;
/** `demo@12`, below the bucket's prefix. */
const keyOf = ({ deployment }: StageContext, path: string): string => `${deployment.policy.replace(':', '-')}/${path}`;

async function upload(context: StageContext): Promise<{ made: Made }> {
  const { deployment } = context;
  const bucket = await openStore(bucketOf(deployment));
  const files = await context.files();
  for (const file of files) {
    const bytes = await file.read();
    // Facts of later evaluations change it: it is replaced, and not in the manifest.
    if (file.path === CARD) await bucket.replace(keyOf(context, CARD), bytes);
    else await publish(bucket, keyOf(context, file.path), bytes);
  }
  const named = files.filter(({ path }) => path !== CARD).map(({ path, bytes, sha256 }) => ({ path, bytes, sha256 }));
  const manifest = { policy: deployment.policy, baseModel: deployment.baseModel, files: named };
  await publish(bucket, keyOf(context, 'manifest.json'), encodeJson(manifest));
  return { made: { url: `${bucketOf(deployment)}/${keyOf(context, '')}` } };
}

async function publish(bucket: Store, key: string, bytes: Uint8Array): Promise<void> {
  const { created, bytes: there } = await bucket.publish(key, bytes);
  if (created || hashBytes(there) === hashBytes(bytes)) return;
  throw new TemperError(
    'DeploymentFailed',
    `${bucket.uri}/${key} has other bytes, and is not overwritten; name another prefix, or remove that folder`,
  );
}

async function verify(context: StageContext): Promise<string | null> {
  const bucket = await openStore(bucketOf(context.deployment));
  for (const file of (await context.files()).filter(({ path }) => path !== CARD)) {
    const difference = await findDifference(bucket, keyOf(context, file.path), file);
    if (difference !== null) return difference;
  }
  return null;
}

async function findDifference(bucket: Store, key: string, file: DeployFile): Promise<string | null> {
  const bytes = await bucket.read(key);
  if (bytes === null) return `${file.path} is missing`;
  return hashBytes(bytes) === file.sha256 ? null : `${file.path} has other bytes`;
}
