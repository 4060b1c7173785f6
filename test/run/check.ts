/** `npm run check`: all checks, also after one failed. With `--typescript`, those that need no Python. */
import { checks } from './checks.ts';
import { runStep } from './command.ts';
import { openTestPython } from './tools.ts';

const python = process.argv.includes('--typescript') ? null : await openTestPython();
const failed: string[] = [];
for (const check of checks(python)) {
  if (!(await runStep(check, process.env)).succeeded) failed.push(check.title);
}
console.log(failed.length === 0 ? '\nall checks passed' : `\nfailed: ${failed.join(', ')}`);
process.exit(failed.length === 0 ? 0 : 1);
