/** Broken lines of the command line: what it prints, what it refuses, whom its servers let in, and what it counts. */
import { breaking, type Mutant } from './mutant.ts';

export const CLI: readonly Mutant[] = [
  ...breaking('cli/command-line/errors.ts', 'test/cli/bad-input.test.ts', [
    [
      'an error that the user can mend ends with the exit code of a bug',
      'USERS.has(error.type) ? EXIT.usage : EXIT.failed',
      'EXIT.failed',
    ],
  ]),
  ...breaking('cli/terminal/output.ts', 'test/security/pulled-runs.test.ts', [
    [
      'what a model writes controls the terminal',
      "line: (text = '') => output.line(printable(text)),",
      "line: (text = '') => output.line(text),",
    ],
  ]),
  ...breaking('core/text/printable.ts', 'test/security/pulled-runs.test.ts', [
    ['what a model writes turns the direction of the terminal around', '\\u202a-\\u202e\\u2066-\\u2069', ''],
  ]),
  ...breaking('cli/pages/html.ts', 'test/cli/report.test.ts', [
    ['what a model writes is markup in a report', ': escapeHtml(String(part));', ': String(part);'],
    ['what a model writes ends the script of a report', ".replace(/</g, '\\\\u003c')", ''],
  ]),
  ...breaking('cli/watch/follow-run.ts', 'test/cli/follow-run.test.ts', [
    [
      'a run that rolled back to the step that was shown keeps the steps of its old branch',
      ' && state?.branch === progress.state?.branch',
      '',
    ],
    [
      'an outage of the store ends the command that watches a run',
      "error.type === 'StoreUnavailable'",
      "error.type === 'BadConfig'",
    ],
  ]),
  ...breaking('cli/init/init.ts', 'test/cli/init.test.ts', [
    ['temper init overwrites files', '!isCompleted && existsSync(join(folder, name))', '!isCompleted && name === null'],
  ]),
  ...breaking('cli/scenarios/write-files.ts', 'test/cli/scenarios/write-files.test.ts', [
    [
      'generated scenarios replace a file that a person has edited',
      "if ((await stateOf(store, file)) === 'own')",
      "if ((await stateOf(store, file)) === 'missing')",
    ],
  ]),
  ...breaking('cli/command-line/files.ts', 'test/cli/scenarios/write-files.test.ts', [
    [
      'generated scenarios are half there where the disk is full',
      'const temporary = `${file}.${process.pid}.tmp`;',
      'const temporary = file;',
    ],
  ]),
  ...breaking('cli/doctor/doctor-leases.ts', 'test/cli/doctor-leases.test.ts', [
    [
      'temper doctor is content with leases that dead workers have left',
      'return left === 0 ? EXIT.ok : EXIT.failed;',
      'return EXIT.ok;',
    ],
  ]),
  ...breaking('cli/distill/distill.ts', 'test/cli/distill.test.ts', [
    ['an attempt that was cut off teaches another model', ' || record.truncated ', ' '],
  ]),
  ...breaking('operations/give-rewards.ts', 'test/cli/rewards.test.ts', [
    [
      'rewards of a file are given up to the first wrong one',
      'if (refusal === null) continue;',
      'if (refusal === null) { await giver.give(given); continue; }',
    ],
  ]),
  ...breaking('operations/copy-run.ts', 'test/security/foreign-stores.test.ts', [
    [
      'a pulled run is trusted like one of this machine',
      'openOther(place, copying.store, true)',
      'openOther(place, copying.store, false)',
    ],
  ]),
  ...breaking('operations/review/keys.ts', 'test/cli/review/keys.test.ts', [
    [
      'the key of one link opens what another kind of key opens',
      'return signed === kind ? ',
      'return signed !== "" ? ',
    ],
    [
      'a link to a review opens the same attempt of another store',
      '.update(`${this.#storeId}\\n${text}`)',
      '.update(text)',
    ],
  ]),
  ...breaking('cli/review/server.ts', 'test/cli/review/links.test.ts', [
    [
      'a link to a review never expires',
      'if (scope.expiresAt <= this.#now()) throw',
      'if (scope.expiresAt <= 0) throw',
    ],
  ]),
  ...breaking('cli/command-line/keyed-place.ts', 'test/cli/serve.test.ts', [
    [
      'a key that nobody has seen protects a server that is open to other machines',
      '  if (!isLoopback(host))\n',
      "  if (host === '')\n",
    ],
  ]),
  ...breaking('cli/ui/server/admission.ts', 'test/cli/ui/admission.test.ts', [
    [
      'a link to temper ui works twice',
      'if (!this.#tickets.delete(this.#hash(ticket))) return null;',
      'if (!this.#tickets.has(this.#hash(ticket))) return null;',
    ],
    ['a preview uses the link to temper ui up', "return method !== 'GET' || ", "return method !== 'GET' && "],
  ]),
  ...breaking('cli/ui/server/server.ts', 'test/cli/ui/admission.test.ts', [
    ['a page of another site acts in temper ui', '    checkOrigin(request);\n', ''],
    [
      'temper ui --read-only acts',
      'if (endpoint.isAction && this.#options.isReadOnly)',
      'if (endpoint.isAction && endpoint.method !== "POST")',
    ],
  ]),
  ...breaking('cli/ui/actions/answer-action.ts', 'test/cli/ui/actions.test.ts', [
    ['an action that is sent again is done twice', '    this.#done.set(requestId, kept);\n', ''],
  ]),
  ...breaking('cli/ui/chat/engines.ts', 'test/cli/ui/engines.test.ts', [
    ['an engine that answers a chat is closed for another model', 'users === 0', 'users >= 0'],
  ]),
  ...breaking('cli/eval/summarise.ts', 'test/cli/summarise.test.ts', [
    [
      'an answer of unknown price counts as free',
      'return values.length === costs.length ? values : [];',
      'return values;',
    ],
    [
      'models are compared with themselves',
      'estimate(pairedDifferences(good, first))',
      'estimate(pairedDifferences(good, good))',
    ],
  ]),
  ...breaking('cli/eval/summarise.ts', 'test/cli/eval.test.ts', [
    ['the interval of a rate is that of any number', 'estimateShare(share, numbers.length)]', 'estimateMean(numbers)]'],
  ]),
  ...breaking('cli/forecast/forecast.ts', 'test/cli/estimate.test.ts', [
    ['a forecast leaves the evaluation before the first step out', '(state === null ? 1 : 0)', '0'],
    [
      'a forecast is as sure of a few steps as of many',
      'if (rates.length < ENOUGH_STEPS) return spread(expected, ASSUMED[kind]);',
      '',
    ],
  ]),
];
