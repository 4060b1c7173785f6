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
