import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { CONFIG_FILE, STATE_FOLDER } from './folders.ts';

/** The nearest folder, upwards, that is marked as a project; else the working folder itself. */
export function findProject(cwd: string): string {
  const marks = [STATE_FOLDER, CONFIG_FILE, 'package.json'];
  for (let folder = cwd; ; folder = dirname(folder)) {
    if (marks.some((mark) => existsSync(join(folder, mark)))) return folder;
    if (dirname(folder) === folder) return cwd;
  }
}
