/**
 * `npm run curves STORE RUN FILE COMMAND…` makes a file of `test/curves/succeeds` or `test/curves/fails` from a run. The
 * command is the one that made the run: it is kept in the file, for whoever makes it anew.
 */
import { writeFileSync } from 'node:fs';
import { openStore } from '../../store/bytes/open-store.ts';
import { requireRun } from '../../store/records/runs/run-reader.ts';
import { writeCurve } from './curve.ts';

const [store, run, file, ...command] = process.argv.slice(2);
if (store === undefined || run === undefined || file === undefined || command.length === 0)
  throw new Error(
    'usage: npm run curves STORE RUN FILE COMMAND…, for example npm run curves .temper/store demo test/curves/succeeds/tic-tac-toe.json npm start',
  );
const { state, steps } = await requireRun(await openStore(store), run);
writeFileSync(file, writeCurve(command.join(' '), steps, state?.evals ?? []));
