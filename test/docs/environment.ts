/** The variables of the environment that the product reads, each with a test in which it acts. */
export interface Variable {
  readonly shownBy: string;
}

const byTest = (shownBy: string): Variable => ({ shownBy });

export const ENVIRONMENT: Readonly<Record<string, Variable>> = {
  TEMPER_STORE: byTest('test/workers/config.test.ts'),
  TEMPER_ENGINE_URL: byTest('test/workers/config.test.ts'),
  TEMPER_ENGINE_KEY: byTest('test/workers/config.test.ts'),
  TEMPER_CACHE: byTest('test/workers/config.test.ts'),
  TEMPER_PYTHON: byTest('test/workers/python-environment.test.ts'),
  TEMPER_TEMPORAL_CLI: byTest('test/workers/temporal-cli.test.ts'),
};
