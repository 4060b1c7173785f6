/** Broken lines of what is delivered to other systems. */
import { breaking, type Mutant } from './mutant.ts';

export const OUTBOUND: readonly Mutant[] = [
  ...breaking('core/text/http.ts', 'test/core/text/http.test.ts', [
    [
      'a key that a server repeats stands in the message',
      "const hidden = known.reduce((hiding, secret) => hiding.replaceAll(secret, '[key]'), text);",
      'const hidden = known.length < 0 ? "" : text;',
    ],
    ['the signature of a presigned address stands in the message', '|Signature|sig|token)=)', '|Signature|sig)=)'],
    ['a key follows a redirect to another server', 'followsRedirects = false', 'followsRedirects = true'],
    [
      'a server that asks to wait is not called again',
      'status === 429 || status >= 500 || status === 408',
      'status >= 500 || status === 408',
    ],
    ['a refused key is tried for ever', 'if (status === 401 || status === 403) {', 'if (status === 402) {'],
    [
      'the wait that a server asks for is cut to a thousandth',
      'Number.isFinite(seconds) ? seconds * 1000 : ',
      'Number.isFinite(seconds) ? seconds : ',
    ],
  ]),
  ...breaking('outbound/deliver-run.ts', 'test/outbound/track/deliver-run.test.ts', [
    [
      'the cursor moves before the target has accepted the rows',
      '  await keep({ ...cursor, pending: next.pending });\n',
      '  await keep(afterRows(cursor, next.pending));\n',
    ],
    [
      'a worker that lost its work writes what a target has',
      '    scope.checkFresh();\n    await writeCursor',
      '    await writeCursor',
    ],
  ]),
  ...breaking('outbound/plan-delivery.ts', 'test/outbound/track/deliver-run.test.ts', [
    [
      'a target that goes on after a rollback keeps the evaluations of the old branch',
      'evals: cursor.evals.filter((step) => step <= fork),',
      'evals: cursor.evals,',
    ],
  ]),
  ...breaking('outbound/plan-delivery.ts', 'test/outbound/track/trackers.test.ts', [
    ['a target that begins now is delivered what was', 'step: steps.at(-1)?.step ?? 0, evals:', 'step: 0, evals:'],
  ]),
  ...breaking('outbound/track/csv.ts', 'test/outbound/track/trackers.test.ts', [
    ['a repeated delivery adds its lines again', '.slice(0, kept + 1);', '.slice(0, Infinity);'],
  ]),
  ...breaking('outbound/track/wandb.ts', 'test/outbound/track/trackers.test.ts', [
    [
      'rows of Weights & Biases that are sent again get new numbers',
      '[HISTORY]: { offset: delivery.rows, content }',
      '[HISTORY]: { offset: rows.at(-1)?.number, content }',
    ],
    ['a run that was cancelled is shown as finished', 'cancelled: 255,', 'cancelled: 0,'],
  ]),
  ...breaking('outbound/track/mlflow.ts', 'test/outbound/track/trackers.test.ts', [
    ['a run of MLflow is made twice after a lost answer', '(await findRun(api, experiment, delivery)) ?? ', ''],
  ]),
  ...breaking('outbound/trace/send-traces.ts', 'test/outbound/trace/send-traces.test.ts', [
    ['spans that a collector left out count as sent', 'if (rejected === 0) return;', 'if (rejected >= 0) return;'],
  ]),
  ...breaking('outbound/trace/attempt-spans.ts', 'test/outbound/trace/trace-target.test.ts', [
    ['failures are sampled like any other attempt', "if (reward === null) return 'failure';", ''],
  ]),
  ...breaking('outbound/deploy/run-stage.ts', 'test/outbound/deploy/targets.test.ts', [
    [
      'a stage that an earlier try recorded is done again',
      'if (deployment.finished.some((record) => record.stage === stage)) return;',
      '',
    ],
  ]),
  ...breaking('outbound/deploy/run-stage.ts', 'test/outbound/deploy/run-stage.test.ts', [
    [
      'a secret of the environment is written into the record of a deployment',
      'const failure = hideSecrets(error, run.env);',
      'const failure = error as Error;',
    ],
  ]),
  ...breaking('outbound/deploy/targets/huggingface.ts', 'test/outbound/deploy/targets.test.ts', [
    [
      'an adapter is uploaded to a repository that everybody can read',
      'if (!isPrivate && !isPublic)',
      'if (!isPrivate && isPublic)',
    ],
    [
      'a commit whose answer was lost is made again',
      'find((commit) => commit.title === title)',
      'find((commit) => commit.title === "")',
    ],
  ]),
  ...breaking('outbound/deploy/targets/fireworks.ts', 'test/outbound/deploy/targets.test.ts', [
    ['the key of Fireworks is sent to a signed address', '    key: null,\n', ''],
    [
      'the model of another deployment is taken for one of this',
      'if (description === own) return;',
      'if (description !== undefined) return;',
    ],
  ]),
  ...breaking('outbound/deploy/targets/s3.ts', 'test/outbound/deploy/targets.test.ts', [
    [
      'the files of another checkpoint in a bucket are taken for this one',
      'created || hashBytes(there) === hashBytes(bytes)',
      'created || there.length > 0',
    ],
  ]),
  ...breaking('outbound/deploy/proof-verdict.ts', 'test/outbound/deploy/proof.test.ts', [
    [
      'a deployment without its adapter passes where chance explains it as well',
      'return lead >= LEAST_LEAD || ',
      'return lead >= 10 * LEAST_LEAD || ',
    ],
    [
      'the distance of a deployment is not bounded',
      'distance === null ? regret <= MOST_REGRET : ',
      'distance === null ? true : ',
    ],
  ]),
];
