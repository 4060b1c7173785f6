/** The variables of the environment that the product reads, each with a test in which it acts. */
import { byTest, type ShownByTest } from '../by-test.ts';

const PLACES = byTest('workers/config/config.test.ts', 'says where store and engine are, over temporal.config.ts');

export const ENVIRONMENT: Readonly<Record<string, ShownByTest>> = {
  TEMPER_STORE: PLACES,
  TEMPER_ENGINE_URL: PLACES,
  TEMPER_ENGINE_KEY: PLACES,
  TEMPER_CACHE: byTest('workers/config/config.test.ts', 'says where the cache is'),
  TEMPER_PYTHON: byTest(
    'workers/install/python-environment.test.ts',
    'takes TEMPER_PYTHON as it is, and says what it lacks',
  ),
  TEMPER_VLLM_PYTHON: byTest(
    'workers/local-stack/children.test.ts',
    'is told of vLLM by temporal.config.ts or --engine, and of its Python',
  ),
  TEMPER_VLLM_KEY: byTest(
    'workers/doctor/doctor-vllm.test.ts',
    'is asked with the key in TEMPER_VLLM_KEY, and told by model and context',
  ),
  TEMPER_VLLM_FOLDER: byTest(
    'outbound/deploy/local-targets.test.ts',
    'a folder that is missing, or that the server does not see, is told with the remedy',
  ),
  TEMPER_SERVER_KEY: byTest(
    'outbound/deploy/local-targets.test.ts',
    'with faults of seed %i the model is found by its name, and asked with the key',
  ),
  TEMPER_METRICS_KEY: byTest(
    'workers/metrics/metrics-server.test.ts',
    'TEMPER_METRICS_KEY is in place of the engine’s key',
  ),
  TEMPER_REVIEW_KEY: byTest(
    'cli/review/review.test.ts',
    'a new key is made for a terminal; one of the environment is never shown',
  ),
  TEMPER_UI_KEY: byTest('cli/ui/admission.test.ts', 'what is wrong is told in one line'),
  TEMPER_SERVE_KEY: byTest('cli/serve.test.ts', 'TEMPER_SERVE_KEY is the key, and is never shown'),
  TEMPER_FEEDBACK_KEY: byTest(
    'cli/plan-recording.test.ts',
    'flags of recording are checked before anything is started',
  ),
  TEMPER_TEMPORAL_CLI: byTest(
    'workers/install/temporal-cli.test.ts',
    'is taken from TEMPER_TEMPORAL_CLI, then from PATH',
  ),
};

/** Those that Temper sets, for programs that play attempts; docs/programs.md has them. */
export const TOLD_TO_PROGRAMS: readonly string[] = [
  'TEMPER_MODEL',
  'TEMPER_PROGRAM_MARK',
  'TEMPER_RESOURCES',
  'TEMPER_RESULT_FILE',
  'TEMPER_SCENARIO',
  'TEMPER_SCENARIO_FILE',
  'TEMPER_SEED',
  'TEMPER_TEMPERATURE',
];
