/** The imports of agent files, and of scripts that own their loop. */
export type { Hosted, HostedOptions } from '../play/hosted/hosted.ts';
export type {
  Agent,
  FinishedAttempt,
  FinishedGroup,
  JudgedResult,
  NamedResult,
  RolloutContext,
  RolloutResult,
  Scenario,
  ScenarioSource,
} from '../play/agent.ts';
export {
  defineAgent,
  type AgentDefinition,
  type ExternalAgentDefinition,
  type NamedExternalDefinition,
  type GroupRewardDefinition,
  type JudgedAgentDefinition,
  type NamedGroupRewardDefinition,
  type NamedRewardsDefinition,
  type RewardedRoles,
  type RolesAgentDefinition,
} from './agent/define-agent.ts';
export { command, type CommandProgramOptions } from './agent/programs.ts';
export { csv, hf, jsonl, parquet, sqlite } from './agent/sources.ts';
export type { CsvOptions } from '../play/sources/csv.ts';
export type { HubOptions } from '../play/sources/hub.ts';
export type { MapOptions, RowSource } from '../play/sources/row-source.ts';
export type { ProgramRequest, Rewrite } from '../play/programs/program.ts';
export { resource, type ResourceDefinition } from './agent/resource.ts';
export type {
  Resource,
  ResourceScope,
  SetupContext,
  TeardownContext,
  WorkerSetupContext,
} from '../play/resources/resource.ts';
export { frozen, league, policy, type LeagueOptions } from './roles/roles.ts';
export type {
  FrozenPlayer,
  LeaguePlayer,
  PolicyPlayer,
  RoleDefinition,
  RoleResult,
} from '../play/roles/role-definition.ts';
export { external, type ExternalOptions } from './external/create-external.ts';
export { review, type ReviewOptions } from './review/review.ts';
export type { ModelClient } from '../play/transports/model-client.ts';
export type { External } from '../play/external.ts';
export { label } from './agent/label.ts';
export { seededRandom } from './agent/random.ts';
export type { Backend } from './loop/backend.ts';
export {
  gatherTrajectoryGroups,
  trajectoryGroupBatches,
  type BatchOptions,
  type GatherOptions,
  type GatherProgress,
} from './loop/gather.ts';
export { iterateDataset, type DatasetBatch, type IterateDatasetOptions } from './loop/iterate-dataset.ts';
export { Model } from './loop/model.ts';
export type { RoleModel } from './loop/policy-model.ts';
export { TrainableModel } from './loop/trainable-model.ts';
export type { ModelOptions, TrainableModelOptions } from './loop/model-options.ts';
export { retry, type RetryOptions } from './loop/retry.ts';
export type { TrainedStep } from './loop/take-step.ts';
export type { Chat, TrainOptions, TrainSftOptions } from './loop/train-settings.ts';
export {
  TrajectoryGroup,
  type Attempt,
  type AttemptContext,
  type AttemptException,
  type AttemptResult,
  type TrajectoryGroupOptions,
} from './loop/trajectory-group.ts';
export {
  Trajectory,
  type Choice,
  type History,
  type Message,
  type Messages,
  type MessagesAndChoices,
  type Metadata,
  type Tools,
  type TrajectoryInit,
  type TurnReward,
} from './loop/trajectory.ts';
export type { Conversation } from '../store/records/judging/conversation.ts';
export type { JudgeEndpoint } from './ruler/judge-endpoint.ts';
export type { RulerOptions } from './ruler/create-ruler.ts';
export type { Ruler } from '../play/judge/ruler.ts';
export type {
  RedactedConversation,
  RedactConversation,
  ServedConversation,
} from '../store/records/groups/served-conversation.ts';
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
  type PlayedTurn,
  type ToolLoopContext,
  type ToolLoopEnd,
  type ToolLoopOptions,
  type ToolLoopResult,
} from './tools/tool-loop.ts';
