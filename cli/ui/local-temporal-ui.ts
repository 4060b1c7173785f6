/** Temporal's UI of the project's local stack. */
import { isAlive } from '../../workers/process/processes.ts';
import { readOwnFile } from '../../workers/project/own-file.ts';
import { projectFolders } from '../../workers/project/folders.ts';
import { uiUrl } from '../../workers/local-stack/children/ui.ts';
import { readStackFile } from '../../workers/local-stack/protocol/stack-file.ts';

/** With the key that opens it; null if no local stack runs. */
export function localTemporalUi(project: string): string | null {
  const folders = projectFolders(project);
  const stack = readStackFile(folders.stackFile);
  const key = readOwnFile(folders.uiKey)?.trim();
  if (stack === null || stack.ports === null || !key || !isAlive({ ...stack, name: 'daemon' })) return null;
  return uiUrl(stack.ports.ui, key);
}
