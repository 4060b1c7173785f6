/** Broken lines of the command line: what it prints, what it refuses, whom its servers let in, and what it counts. */
import type { Mutant } from './mutant.ts';

const ADMISSION_TEST = 'test/cli/ui/admission.test.ts';
const ESTIMATE_TEST = 'test/cli/estimate.test.ts';
const EVAL_TEST = 'test/cli/eval.test.ts';
const PULLED_TEST = 'test/security/pulled-runs.test.ts';
const REPORT_TEST = 'test/cli/report.test.ts';
const REVIEW = 'test/cli/review';
const FOLLOW_TEST = 'test/cli/follow-run.test.ts';
const WRITE_FILES_TEST = 'test/cli/scenarios/write-files.test.ts';

const PRINTED: readonly Mutant[] = [
  {
    name: 'an error that the user can mend ends with the exit code of a bug',
    file: 'cli/command-line/errors.ts',
    find: 'USERS.has(error.type) ? EXIT.usage : EXIT.failed',
    replace: 'EXIT.failed',
    test: 'test/cli/bad-input.test.ts',
  },
  {
    name: 'what a model writes controls the terminal',
    file: 'cli/terminal/output.ts',
    find: "line: (text = '') => output.line(printable(text)),",
    replace: "line: (text = '') => output.line(text),",
    test: PULLED_TEST,
  },
  {
    name: 'what a model writes turns the direction of the terminal around',
    file: 'cli/terminal/output.ts',
    find: '\\u202a-\\u202e\\u2066-\\u2069',
    replace: '',
    test: PULLED_TEST,
  },
  {
    name: 'what a model writes is markup in a report',
    file: 'cli/report/html.ts',
    find: ': escapeHtml(String(part));',
    replace: ': String(part);',
    test: REPORT_TEST,
  },
  {
    name: 'what a model writes ends the script of a report',
    file: 'cli/report/html.ts',
    find: ".replace(/</g, '\\\\u003c')",
    replace: '',
    test: REPORT_TEST,
  },
  {
    name: 'a run that rolled back to the step that was shown keeps the steps of its old branch',
    file: 'cli/watch/follow-run.ts',
    find: ' && state?.branch === progress.state?.branch',
    replace: '',
    test: FOLLOW_TEST,
  },
  {
    name: 'an outage of the store ends the command that watches a run',
    file: 'cli/watch/follow-run.ts',
    find: "error.type === 'StoreUnavailable'",
    replace: "error.type === 'BadConfig'",
    test: FOLLOW_TEST,
  },
];

const WRITTEN: readonly Mutant[] = [
  {
    name: 'temper init overwrites files',
    file: 'cli/init/init.ts',
    find: '!isCompleted && existsSync(join(folder, name))',
    replace: '!isCompleted && name === null',
    test: 'test/cli/init.test.ts',
  },
  {
    name: 'generated scenarios replace a file that a person has edited',
    file: 'cli/scenarios/write-files.ts',
    find: "if ((await stateOf(store, file)) === 'own')",
    replace: "if ((await stateOf(store, file)) === 'missing')",
    test: WRITE_FILES_TEST,
  },
  {
    name: 'generated scenarios are half there where the disk is full',
    file: 'cli/scenarios/write-files.ts',
    find: 'const temporary = `${file}.${process.pid}.tmp`;',
    replace: 'const temporary = file;',
    test: WRITE_FILES_TEST,
  },
  {
    name: 'temper doctor is content with leases that dead workers have left',
    file: 'cli/doctor/doctor-leases.ts',
    find: 'return left === 0 ? EXIT.ok : EXIT.failed;',
    replace: 'return EXIT.ok;',
    test: 'test/cli/doctor-leases.test.ts',
  },
  {
    name: 'an attempt that was cut off teaches another model',
    file: 'cli/distill/distill.ts',
    find: ' || record.truncated ',
    replace: ' ',
    test: 'test/cli/distill.test.ts',
  },
  {
    name: 'rewards of a file are given up to the first wrong one',
    file: 'cli/rewards/give-rewards.ts',
    find: '  await checkAll(giver, gifts);\n',
    replace: '',
    test: 'test/cli/rewards.test.ts',
  },
  {
    name: 'a pulled run is trusted like one of this machine',
    file: 'cli/checkpoints/copy.ts',
    find: "isForeign: action === 'pull'",
    replace: 'isForeign: false',
    test: 'test/security/foreign-stores.test.ts',
  },
];

const ADMITTED: readonly Mutant[] = [
  {
    name: 'the key of one link opens what another kind of key opens',
    file: 'cli/review/keys.ts',
    find: 'return signed === kind ? ',
    replace: 'return signed !== "" ? ',
    test: `${REVIEW}/keys.test.ts`,
  },
  {
    name: 'a link to a review opens the same attempt of another store',
    file: 'cli/review/keys.ts',
    find: '.update(`${this.#storeId}\\n${text}`)',
    replace: '.update(text)',
    test: `${REVIEW}/keys.test.ts`,
  },
  {
    name: 'a link to a review never expires',
    file: 'cli/review/server.ts',
    find: 'if (scope.expiresAt <= this.#now()) throw',
    replace: 'if (scope.expiresAt <= 0) throw',
    test: `${REVIEW}/links.test.ts`,
  },
  {
    name: 'a key that nobody has seen protects a server that is open to other machines',
    file: 'cli/command-line/keyed-place.ts',
    find: '  if (!isLoopback(host))\n',
    replace: "  if (host === '')\n",
    test: 'test/cli/serve.test.ts',
  },
  {
    name: 'a link to temper ui works twice',
    file: 'cli/ui/server/admission.ts',
    find: 'if (!this.#tickets.delete(this.#hash(ticket))) return null;',
    replace: 'if (!this.#tickets.has(this.#hash(ticket))) return null;',
    test: ADMISSION_TEST,
  },
  {
    name: 'a preview uses the link to temper ui up',
    file: 'cli/ui/server/admission.ts',
    find: "return method !== 'GET' || ",
    replace: "return method !== 'GET' && ",
    test: ADMISSION_TEST,
  },
  {
    name: 'a page of another site acts in temper ui',
    file: 'cli/ui/server/server.ts',
    find: '      checkOrigin(request);\n',
    replace: '',
    test: ADMISSION_TEST,
  },
  {
    name: 'temper ui --read-only acts',
    file: 'cli/ui/server/server.ts',
    find: 'if (endpoint.isAction && this.#options.isReadOnly)',
    replace: 'if (endpoint.isAction && method !== "POST")',
    test: ADMISSION_TEST,
  },
  {
    name: 'an action that is sent again is done twice',
    file: 'cli/ui/actions/answer-action.ts',
    find: '    this.#done.set(requestId, { body, result });\n',
    replace: '',
    test: 'test/cli/ui/actions.test.ts',
  },
];

const COUNTED: readonly Mutant[] = [
  {
    name: 'an answer of unknown price counts as free',
    file: 'cli/eval/summarise.ts',
    find: 'return values.length === costs.length ? values : [];',
    replace: 'return values;',
    test: 'test/cli/summarise.test.ts',
  },
  {
    name: 'the interval of a rate is that of any number',
    file: 'cli/eval/summarise.ts',
    find: 'estimateShare(share, numbers.length)]',
    replace: 'estimateMean(numbers)]',
    test: EVAL_TEST,
  },
  {
    name: 'models are compared with themselves',
    file: 'cli/eval/summarise.ts',
    find: 'estimate(pairedDifferences(good, first))',
    replace: 'estimate(pairedDifferences(good, good))',
    test: 'test/cli/summarise.test.ts',
  },
  {
    name: 'a forecast leaves the evaluation before the first step out',
    file: 'cli/forecast/forecast.ts',
    find: '(state === null ? 1 : 0)',
    replace: '0',
    test: ESTIMATE_TEST,
  },
  {
    name: 'a forecast is as sure of a few steps as of many',
    file: 'cli/forecast/forecast.ts',
    find: 'if (rates.length < ENOUGH_STEPS) return spread(expected, ASSUMED[kind]);',
    replace: '',
    test: ESTIMATE_TEST,
  },
  {
    name: 'scenarios with a model of unknown price cost nothing',
    file: 'cli/scenarios/estimate.ts',
    find: 'usd: isPriced ? sum(usdOf) : null,',
    replace: 'usd: sum(usdOf),',
    test: 'test/cli/scenarios/estimate.test.ts',
  },
];

export const CLI: readonly Mutant[] = [...PRINTED, ...WRITTEN, ...ADMITTED, ...COUNTED];
