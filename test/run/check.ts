/** `npm run check`: all checks, also after one failed. */
import { checks } from './checks.ts';
import { runStep } from './command.ts';
import { openTools } from './tools.ts';

const { python } = await openTools();
const failed: string[] = [];
for (const check of checks(python)) {
  if (!(await runStep(check, process.env)).succeeded) failed.push(check.title);
}
console.log(failed.length === 0 ? '\nall checks passed' : `\nfailed: ${failed.join(', ')}`);
process.exit(failed.length === 0 ? 0 : 1);
