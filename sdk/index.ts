/** `temper-rl`: what an agent file imports. */
export {
  defineAgent,
  type Agent,
  type AgentDefinition,
  type JudgedAgentDefinition,
  type JudgedResult,
  type RolloutContext,
  type RolloutResult,
  type Scenario,
  type ScenarioSource,
} from './define-agent.ts';
export { label } from './label.ts';
export { seededRandom } from './random.ts';
export type { Conversation } from './ruler/conversation.ts';
export type { JudgeEndpoint } from './ruler/judge-model.ts';
export type { Ruler, RulerOptions } from './ruler/ruler.ts';
export {
  ruler,
  rulerScoreGroup,
  scoreConversations,
  type RulerScore,
  type ScorableTrajectory,
  type ScoreContext,
} from './ruler/score.ts';
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
