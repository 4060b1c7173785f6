/**
 * The semantic conventions for generative AI of OpenTelemetry 1.41.0, the last release before they moved to a repository
 * of their own; Langfuse, MLflow and Weave read them. They are in development: another version may name things otherwise.
 */
export const SCHEMA_URL = 'https://opentelemetry.io/schemas/1.41.0';

export const GEN_AI = {
  operation: 'gen_ai.operation.name',
  provider: 'gen_ai.provider.name',
  agent: 'gen_ai.agent.name',
  agentVersion: 'gen_ai.agent.version',
  conversation: 'gen_ai.conversation.id',
  requestModel: 'gen_ai.request.model',
  responseModel: 'gen_ai.response.model',
  choices: 'gen_ai.request.choice.count',
  finishReasons: 'gen_ai.response.finish_reasons',
  inputTokens: 'gen_ai.usage.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  inputMessages: 'gen_ai.input.messages',
  outputMessages: 'gen_ai.output.messages',
  toolDefinitions: 'gen_ai.tool.definitions',
  tool: 'gen_ai.tool.name',
  toolType: 'gen_ai.tool.type',
  toolCall: 'gen_ai.tool.call.id',
  toolArguments: 'gen_ai.tool.call.arguments',
  toolResult: 'gen_ai.tool.call.result',
  evaluation: 'gen_ai.evaluation.name',
  score: 'gen_ai.evaluation.score.value',
  scoreLabel: 'gen_ai.evaluation.score.label',
  explanation: 'gen_ai.evaluation.explanation',
} as const;

/** Event of an operation that was evaluated. */
export const EVALUATION_EVENT = 'gen_ai.evaluation.result';

/** Parameters of a request, as chat completions and the conventions name them. */
export const REQUEST_PARAMETERS = {
  temperature: 'gen_ai.request.temperature',
  top_p: 'gen_ai.request.top_p',
  top_k: 'gen_ai.request.top_k',
  max_tokens: 'gen_ai.request.max_tokens',
  seed: 'gen_ai.request.seed',
  frequency_penalty: 'gen_ai.request.frequency_penalty',
  presence_penalty: 'gen_ai.request.presence_penalty',
} as const;

/** Langfuse and others show what has the same session side by side. */
export const SESSION = 'session.id';
export const ERROR_TYPE = 'error.type';
