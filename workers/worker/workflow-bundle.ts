/** The workflows' bundle: a package has one, a clone makes one per content, because webpack takes 1.6 s. */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode, type Logger } from '@temporalio/worker';
import { modulePath } from '../process/module-path.ts';

const PACKAGED = fileURLToPath(new URL('../../workflows/bundle.js', import.meta.url));
const SOURCES = ['../../workflows', '../../core'].map((folder) => fileURLToPath(new URL(folder, import.meta.url)));

/** Its path: in the package, or in the cache folder. */
export async function workflowBundle(cache: string, logger: Logger): Promise<string> {
  if (existsSync(PACKAGED)) return PACKAGED;
  const folder = join(cache, 'workflow-bundles');
  const file = join(folder, `${sourcesSha256()}.js`);
  if (existsSync(file)) return file;
  const { code } = await bundleWorkflowCode({ workflowsPath: modulePath('../workflows/index'), logger });
  mkdirSync(folder, { recursive: true });
  // Two workers at once write the same bytes.
  const temporary = `${file}.${process.pid}.tmp`;
  writeFileSync(temporary, code);
  renameSync(temporary, file);
  return file;
}

/** Everything that may be in the bundle: our sources, and the version of what they import. */
function sourcesSha256(): string {
  const hash = createHash('sha256').update(`${sdkVersion()} node ${process.versions.modules}`);
  for (const folder of SOURCES) {
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));
    for (const name of files.toSorted()) hash.update(`\0${name}\0`).update(readFileSync(join(folder, name)));
  }
  return hash.digest('hex').slice(0, 32);
}

function sdkVersion(): string {
  const require = createRequire(import.meta.url);
  return (require('@temporalio/worker/package.json') as { version: string }).version;
}

/**
 * The SDK gives an activation five seconds of the clock, and Node aborts the whole process where that runs out within an
 * asynchronous function (nodejs/node #38503, temporalio/sdk-typescript #939: "async hook stack has become corrupted").
 * Replaying a long history on a busy machine takes longer, and so does a process that was frozen meanwhile. Such a task is
 * only late: the server has given it to somebody else. The option is not in the SDK's types.
 */
export const PATIENT_THREAD = { isolateExecutionTimeout: '1 hour' };
