/** Broken lines of what keeps a run going, and of what must never be removed, answered or paid for. */
import { breaking, type Mutant } from './mutant.ts';

export const DURABLE: readonly Mutant[] = [
  ...breaking('store/records/retention/prune.ts', 'test/store/records/retention/prune.test.ts', [
    [
      'prune removes blobs before it marks their step',
      '  for (const checkpoint of plan.pruned) {',
      '  for (const ref of plan.blobs) await store.removeBlob(ref);\n  for (const checkpoint of plan.pruned) {',
    ],
  ]),
  ...breaking('store/records/retention/prune.ts', 'test/store/records/retention.test.ts', [
    [
      'what a run keeps as it goes depends on the moment',
      'asOf?.branch === branch && step > asOf.step;',
      'asOf?.branch === branch && step > Infinity;',
    ],
    [
      'an evaluated checkpoint loses its adapter as the run goes',
      "return retention.asOf === undefined || !wasEvaluated(entry) || 'optimizer';",
      'return retention.asOf === undefined || wasEvaluated(entry) || true;',
    ],
    [
      'what a killed pruning left is never removed',
      'return isNew || unneeded(entry, to).length > 0 ?',
      'return isNew ?',
    ],
  ]),
  ...breaking('store/records/retention/store-index.ts', 'test/store/records/retention/prune.test.ts', [
    [
      'prune overlooks what began while it was reading manifests',
      'await eachName(store, layout.RUNS_PREFIX, (run) => reader.readCommits(run));',
      '',
    ],
  ]),
  ...breaking('store/records/retention/live-blobs.ts', 'test/store/records/retention/prune.test.ts', [
    [
      'the parent of a run that has not begun is pruned',
      'yield [file?.config.parent, `the run',
      'yield [null, `the run',
    ],
    ['the judge of a run under way is pruned', "config?.judge?.replace(/^engine\\//, '') ?? ''", "''"],
  ]),
  ...breaking('store/records/retention/live-blobs.ts', 'test/store/records/retention.test.ts', [
    [
      'a run that makes the same checkpoints loses those ahead of it',
      '!(isShared(newest) || hasBareBranch(other))',
      '!(isShared(newest) && hasBareBranch(other))',
    ],
  ]),
  ...breaking('store/records/retention/live-blobs.ts', 'test/store/records/retention/garbage.test.ts', [
    [
      'what a manifest alone names is garbage',
      'if (!gone.has(hash)) live.add(hash);',
      'if (gone.has(hash)) live.add(hash);',
    ],
  ]),
  ...breaking('store/bytes/file-store.ts', 'test/store/records/retention/garbage.test.ts', [
    [
      'garbage that was written again since it was found is removed',
      'found === null || found.modifiedAtMs > modifiedAtMs',
      'found === null',
    ],
  ]),
  ...breaking('store/records/runs/positions.ts', 'test/store/records/runs/positions.test.ts', [
    ['a rollback refunds what the run has cost', 'costs: file.costs ?? position.costs', 'costs: position.costs'],
    ['work without a model is forgotten by a resume', 'if (seconds <= spent.seconds) return ledger;', 'return ledger;'],
  ]),
  ...breaking('store/records/runs/positions.ts', 'test/store/records/overlap.test.ts', [
    [
      'steps of a branch sample from before it began',
      'position.policies.map(() => position.checkpoint)',
      'position.policies',
    ],
  ]),
  ...breaking('activities/pause-detector.ts', 'test/activities/pause-detector.test.ts', [
    ['a clock that was put right stops all work', ' && endedAt <= now', ''],
  ]),
  ...breaking(
    'gpu-worker/temper_gpu/engine/embedded/trials.py',
    'gpu-worker/tests/engine/embedded/test_scheduling.py',
    [['whoever was in a pass that failed fails with it', 'if running == [self._tried]:', 'if len(running) == 1:']],
  ),
  ...breaking('play/programs/play-program.ts', 'test/play/programs.test.ts', [
    ['a program that ends itself is played again for ever', '< SAME_DEATHS) return death', '< Infinity) return death'],
  ]),
  ...breaking('play/transports/gateway.ts', 'test/play/gateway-limits.test.ts', [
    [
      'the requests of an attempt at once are not bounded',
      'endpoint.requests >= MAX_REQUESTS',
      'endpoint.requests >= Infinity',
    ],
  ]),
  ...breaking('play/transports/http-server.ts', 'test/play/gateway-limits.test.ts', [
    [
      'the bytes that an attempt may have read are not bounded',
      'this.#heldBytes <= this.#maxBytes',
      'this.#heldBytes <= Infinity',
    ],
  ]),
  ...breaking('play/transports/gateway-connections.ts', 'test/play/gateway-limits.test.ts', [
    ['the connections of an attempt are not bounded', 'owned.size >= MAX_OF_AN_ATTEMPT', 'owned.size >= Infinity'],
  ]),
  ...breaking('gpu-worker/temper_gpu/model/hub.py', 'gpu-worker/tests/model/test_hub.py', [
    [
      'the files of a revision are downloaded, not those of the recorded commit',
      'model.repository, revision=commit,',
      'model.repository, revision=model.revision,',
    ],
  ]),
  ...breaking('gpu-worker/temper_gpu/training/samplers.py', 'gpu-worker/tests/training/test_samplers.py', [
    [
      'a pruned sampler is read all the same',
      'None if is_pruned(store, run, manifest) else lambda: load_policy(store, manifest, policy).tensors',
      'lambda: load_policy(store, manifest, policy).tensors',
    ],
  ]),
  ...breaking('core/contract/failures.ts', 'test/store/records/later-version.test.ts', [
    ['what a later version wrote is damage', 'schema > RECORD_SCHEMA', 'schema < RECORD_SCHEMA'],
  ]),
  ...breaking('store/records/copy/compare.ts', 'test/store/records/later-version.test.ts', [
    [
      'a copy repairs what a later version wrote',
      "return !(error instanceof TemperError && error.type === 'LaterVersion');",
      'return error instanceof Error;',
    ],
  ]),
  ...breaking('workers/local-stack/daemon-connection.ts', 'test/security/stack-file.test.ts', [
    ['a command joins a stack of any version', '    checkVersion(stack);\n', ''],
  ]),
  ...breaking('gpu-worker/temper_gpu/temporal/activities.py', 'gpu-worker/tests/security/test_inputs.py', [
    [
      'a GPU worker refuses for good what a later version sent',
      'if is_from_later_version(error):',
      'if not error.errors():',
    ],
  ]),
  ...breaking('gpu-worker/temper_gpu/engine/embedded/host.py', 'gpu-worker/tests/process/test_room.py', [
    [
      'the model that the trainer holds is closed for another one',
      'if name != trained and engine.is_idle',
      'if engine.is_idle',
    ],
  ]),
  ...breaking('gpu-worker/temper_gpu/process/room.py', 'gpu-worker/tests/process/test_room.py', [
    [
      'each base model is compared with all memory, whatever others hold',
      'own + self._taken() + self._needs[name] > total',
      'own + self._needs[name] > total',
    ],
  ]),
];
