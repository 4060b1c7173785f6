/** A project whose one run `temper serve` can serve: make-run.ts PROJECT MODEL ADAPTER, all folders. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeServableRun } from '../store/records/servable-run.ts';

const [project = '', model = '', adapter = ''] = process.argv.slice(2);
const baseModel = 'reciting';

writeFileSync(
  join(project, 'temporal.config.ts'),
  `export default ${JSON.stringify({ models: { [baseModel]: model } })};\n`,
);
await makeServableRun({ project, run: 'demo', baseModel, adapter, rollout: { maxTokens: 1024 } });
