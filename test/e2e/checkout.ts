/**
 * A checkout with a `.temper` of its own: everything is linked to the real one but `package.json`, which marks a project,
 * and the configuration.
 */
import { cpSync, mkdtempSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ProjectFolder, WITHOUT_STANDBY } from './project-folder.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const CONFIG = 'temporal.config.ts';
const NOT_LINKED = new Set(['.temper', '.git', 'package.json', CONFIG]);

export function linkCheckout(env: NodeJS.ProcessEnv = {}, config = WITHOUT_STANDBY): ProjectFolder {
  const checkout = new ProjectFolder(mkdtempSync(join(tmpdir(), 'temper-checkout-')), { env });
  for (const name of readdirSync(ROOT)) {
    if (!NOT_LINKED.has(name)) symlinkSync(join(ROOT, name), join(checkout.folder, name));
  }
  writeFileSync(join(checkout.folder, CONFIG), config);
  cpSync(join(ROOT, 'package.json'), join(checkout.folder, 'package.json'));
  return checkout;
}
