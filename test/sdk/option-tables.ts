/** Holds the tables of options to the types of the options: this file does not type-check when they differ. */
import type { WorkflowAgentOptions } from '../../workers/workflow-agents/options.ts';
import type { Scenario } from '../../play/agent.ts';
import type { AgentDefinition } from '../../sdk/agent/define-agent.ts';
import type { ResourceDefinition } from '../../sdk/agent/resource.ts';
import type { CommandProgramOptions } from '../../sdk/agent/programs.ts';
import type { CsvOptions } from '../../play/sources/csv.ts';
import type { HubOptions } from '../../play/sources/hub.ts';
import type { MapOptions } from '../../play/sources/row-source.ts';
import type { BatchOptions, GatherOptions } from '../../sdk/loop/gather.ts';
import type { DeleteCheckpointsOptions } from '../../sdk/loop/delete-checkpoints.ts';
import type { IterateDatasetOptions } from '../../sdk/loop/iterate-dataset.ts';
import type { ModelOptions, TrainableModelOptions } from '../../sdk/loop/model-options.ts';
import type { RetryOptions } from '../../sdk/loop/retry.ts';
import type { TrainOptions, TrainSftOptions } from '../../sdk/loop/train-settings.ts';
import type { TrajectoryGroupOptions } from '../../sdk/loop/trajectory-group.ts';
import type { TrajectoryInit } from '../../sdk/loop/trajectory.ts';
import type { JudgeEndpoint } from '../../sdk/ruler/judge-endpoint.ts';
import type { ExternalOptions } from '../../sdk/external/create-external.ts';
import type { ReviewOptions } from '../../sdk/review/review.ts';
import type { RulerOptions } from '../../sdk/ruler/create-ruler.ts';
import type { McpCommandOptions, McpUrlOptions } from '../../sdk/mcp/mcp.ts';
import type { PlayAgentOptions } from '../../sdk/testing/play-agent.ts';
import type { ScoreContext } from '../../sdk/ruler/score.ts';
import type { ToolLoopOptions } from '../../sdk/tools/tool-loop.ts';
import type { ToolDefinition } from '../../sdk/tools/tool.ts';
import type { ForkOptions } from '../../workers/local-backend/local-backend.ts';
import type { LocalBackendOptions } from '../../workers/local-backend/hold-stack.ts';
import type { LeagueOptions } from '../../sdk/roles/roles.ts';
import { OPTION_TABLES } from '../../sdk/options/check-options.ts';

/** A type error if a member of `T` has no row. */
type Table<T> = { readonly [K in keyof T]-?: object extends Pick<T, K> ? 'optional' : 'required' };

export interface OptionTables {
  readonly defineAgent: Table<AgentDefinition<Scenario>>;
  readonly resource: Table<ResourceDefinition<unknown>>;
  readonly league: Table<LeagueOptions>;
  readonly command: Table<CommandProgramOptions>;
  readonly jsonl: Table<MapOptions<unknown, Scenario>>;
  readonly csv: Table<CsvOptions<unknown, Scenario>>;
  readonly parquet: Table<MapOptions<unknown, Scenario>>;
  readonly sqlite: Table<MapOptions<unknown, Scenario>>;
  readonly hf: Table<HubOptions<unknown, Scenario>>;
  readonly Model: Table<ModelOptions>;
  readonly TrainableModel: Table<TrainableModelOptions>;
  readonly LocalBackend: Table<LocalBackendOptions>;
  readonly 'backend.forkCheckpoint': Table<ForkOptions>;
  readonly Trajectory: Table<TrajectoryInit>;
  readonly TrajectoryGroup: Table<TrajectoryGroupOptions>;
  readonly gatherTrajectoryGroups: Table<GatherOptions>;
  readonly trajectoryGroupBatches: Table<BatchOptions>;
  readonly iterateDataset: Table<IterateDatasetOptions>;
  readonly 'model.train': Table<TrainOptions>;
  readonly 'model.trainSft': Table<TrainSftOptions>;
  readonly 'model.deleteCheckpoints': Table<DeleteCheckpointsOptions>;
  readonly workflowAgent: Table<WorkflowAgentOptions<Scenario>>;
  readonly retry: Table<RetryOptions>;
  readonly tool: Table<ToolDefinition<never, unknown>>;
  readonly toolLoop: Table<ToolLoopOptions>;
  readonly mcp: Table<McpCommandOptions>;
  readonly 'mcp.url': Table<McpUrlOptions>;
  readonly playAgent: Table<PlayAgentOptions<Scenario>>;
  readonly ruler: Table<RulerOptions>;
  readonly external: Table<ExternalOptions>;
  readonly review: Table<ReviewOptions>;
  readonly 'ruler.judge': Table<JudgeEndpoint>;
  readonly 'ruler.context': Table<ScoreContext>;
}

/** Assigned in both directions: each option has its row, and each row its option. */
const byType: OptionTables = OPTION_TABLES;
export const TYPED_TABLES: typeof OPTION_TABLES = byType;
