/** Broken lines of what other systems are told. */
import type { Mutant } from './mutant.ts';

const TARGETS_TEST = 'test/outbound/deploy/targets.test.ts';
const PROOF_TEST = 'test/outbound/deploy/proof.test.ts';
const TRACE_TEST = 'test/outbound/trace/trace-target.test.ts';
const TELL_TEST = 'test/outbound/track/tell-run.test.ts';
const TRACKERS_TEST = 'test/outbound/track/trackers.test.ts';
const HTTP_TEST = 'test/outbound/http.test.ts';

const CALLS: readonly Mutant[] = [
  {
    name: 'a key that a server repeats stands in the message',
    file: 'outbound/http.ts',
    find: "const hidden = known.reduce((hiding, secret) => hiding.replaceAll(secret, '[key]'), text);",
    replace: 'const hidden = known.length < 0 ? "" : text;',
    test: HTTP_TEST,
  },
  {
    name: 'the signature of a presigned address stands in the message',
    file: 'outbound/http.ts',
    find: '|Signature|sig|token)=)',
    replace: '|Signature|sig)=)',
    test: HTTP_TEST,
  },
  {
    name: 'a key follows a redirect to another server',
    file: 'outbound/http.ts',
    find: "redirect: 'error',",
    replace: "redirect: 'follow',",
    test: HTTP_TEST,
  },
  {
    name: 'a server that asks to wait is not called again',
    file: 'outbound/http.ts',
    find: 'status === 429 || status >= 500 || status === 408',
    replace: 'status >= 500 || status === 408',
    test: HTTP_TEST,
  },
  {
    name: 'a refused key is tried for ever',
    file: 'outbound/http.ts',
    find: 'if (status === 401 || status === 403) {',
    replace: 'if (status === 402) {',
    test: HTTP_TEST,
  },
  {
    name: 'the wait that a server asks for is cut to a thousandth',
    file: 'outbound/http.ts',
    find: 'Number.isFinite(seconds) ? seconds * 1000 : ',
    replace: 'Number.isFinite(seconds) ? seconds : ',
    test: HTTP_TEST,
  },
];

const TOLD: readonly Mutant[] = [
  {
    name: 'the cursor moves before the target has accepted the rows',
    file: 'outbound/tell-run.ts',
    find: '  await keep({ ...cursor, pending: telling.pending });\n',
    replace: '  await keep(afterRows(cursor, telling.pending));\n',
    test: TELL_TEST,
  },
  {
    name: 'a worker that lost its work writes how far a target was told',
    file: 'outbound/tell-run.ts',
    find: '    scope.checkFresh();\n    await writeCursor',
    replace: '    await writeCursor',
    test: TELL_TEST,
  },
  {
    name: 'a target that goes on after a rollback keeps the evaluations of the old branch',
    file: 'outbound/plan-telling.ts',
    find: 'evals: cursor.evals.filter((step) => step <= fork),',
    replace: 'evals: cursor.evals,',
    test: TELL_TEST,
  },
  {
    name: 'a target that is told from now on is told what was',
    file: 'outbound/plan-telling.ts',
    find: 'step: steps.at(-1)?.step ?? 0, evals:',
    replace: 'step: 0, evals:',
    test: 'test/outbound/track/trackers.test.ts',
  },
  {
    name: 'a repeated delivery adds its lines again',
    file: 'outbound/track/csv.ts',
    find: '.slice(0, kept + 1);',
    replace: '.slice(0, Infinity);',
    test: TRACKERS_TEST,
  },
  {
    name: 'rows of Weights & Biases that are sent again get new numbers',
    file: 'outbound/track/wandb.ts',
    find: '[HISTORY]: { offset: told.rows, content }',
    replace: '[HISTORY]: { offset: rows.at(-1)?.number, content }',
    test: TRACKERS_TEST,
  },
  {
    name: 'a run that was cancelled is shown as finished',
    file: 'outbound/track/wandb.ts',
    find: 'cancelled: 255,',
    replace: 'cancelled: 0,',
    test: TRACKERS_TEST,
  },
  {
    name: 'a run of MLflow is made twice after a lost answer',
    file: 'outbound/track/mlflow.ts',
    find: '(await findRun(api, experiment, told)) ?? ',
    replace: '',
    test: TRACKERS_TEST,
  },
  {
    name: 'spans that a collector left out count as sent',
    file: 'outbound/trace/send-traces.ts',
    find: 'if (rejected === 0) return;',
    replace: 'if (rejected >= 0) return;',
    test: 'test/outbound/trace/send-traces.test.ts',
  },
  {
    name: 'failures are sampled like any other attempt',
    file: 'outbound/trace/sample-attempts.ts',
    find: "if (reward === null) return 'failure';",
    replace: '',
    test: TRACE_TEST,
  },
];

const DEPLOYED: readonly Mutant[] = [
  {
    name: 'a stage that an earlier try recorded is done again',
    file: 'outbound/deploy/run-stage.ts',
    find: 'if (deployment.finished.some((record) => record.stage === stage)) return;',
    replace: '',
    test: 'test/outbound/deploy/targets.test.ts',
  },
  {
    name: 'a secret of the environment is written into the record of a deployment',
    file: 'outbound/deploy/run-stage.ts',
    find: 'const failure = hideSecrets(error, run.env);',
    replace: 'const failure = error as Error;',
    test: 'test/outbound/deploy/run-stage.test.ts',
  },
  {
    name: 'an adapter is uploaded to a repository that everybody can read',
    file: 'outbound/deploy/targets/huggingface.ts',
    find: 'if (!isPrivate && !isPublic)',
    replace: 'if (!isPrivate && isPublic)',
    test: TARGETS_TEST,
  },
  {
    name: 'a commit whose answer was lost is made again',
    file: 'outbound/deploy/targets/huggingface.ts',
    find: 'find((commit) => commit.title === title)',
    replace: 'find((commit) => commit.title === "")',
    test: TARGETS_TEST,
  },
  {
    name: 'the key of Fireworks is sent to a signed address',
    file: 'outbound/deploy/targets/fireworks.ts',
    find: '    key: null,\n',
    replace: '',
    test: TARGETS_TEST,
  },
  {
    name: 'the model of another deployment is taken for one of this',
    file: 'outbound/deploy/targets/fireworks.ts',
    find: 'if (description === own) return;',
    replace: 'if (description !== undefined) return;',
    test: TARGETS_TEST,
  },
  {
    name: 'the files of another checkpoint in a bucket are taken for this one',
    file: 'outbound/deploy/targets/s3.ts',
    find: 'created || hashBytes(there) === hashBytes(bytes)',
    replace: 'created || there.length > 0',
    test: TARGETS_TEST,
  },
  {
    name: 'a deployment without its adapter passes where chance explains it as well',
    file: 'outbound/deploy/proof-verdict.ts',
    find: 'return lead >= LEAST_LEAD || ',
    replace: 'return lead >= 10 * LEAST_LEAD || ',
    test: PROOF_TEST,
  },
  {
    name: 'the distance of a deployment is not bounded',
    file: 'outbound/deploy/proof-verdict.ts',
    find: 'distance === null ? regret <= MOST_REGRET : ',
    replace: 'distance === null ? true : ',
    test: PROOF_TEST,
  },
];

export const OUTBOUND: readonly Mutant[] = [...CALLS, ...TOLD, ...DEPLOYED];
