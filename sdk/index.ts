/** `temper-rl`: what an agent file imports. */
export {
  defineAgent,
  type Agent,
  type AgentDefinition,
  type RolloutContext,
  type RolloutResult,
  type Scenario,
  type ScenarioSource,
} from './define-agent.ts';
export { label } from './label.ts';
export { seededRandom } from './random.ts';
export {
  tool,
  type ArgumentsSchema,
  type JsonSchema,
  type Tool,
  type ToolDefinition,
  type UncheckedArguments,
} from './tools/tool.ts';
export {
  toolLoop,
  type PlayedToolCall,
  type ToolLoopContext,
  type ToolLoopEnd,
  type ToolLoopOptions,
  type ToolLoopResult,
} from './tools/tool-loop.ts';
