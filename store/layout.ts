import type { GroupRef } from '../core/contract/contract.ts';
import { fillTemplate } from '../core/names/policy-name.ts';
import { STORE_KEYS } from '../core/contract/wire-constants.ts';

/**
 * Keys of the store, relative to its root, `/` between names. Beside these, GPU workers write the view
 * `branches/<b>/checkpoints/<n>/adapter/` in PEFT's format.
 */

export interface StepPlace {
  run: string;
  branch: number;
  step: number;
}

export interface GroupPlace extends StepPlace {
  group: number;
}

export const RUNS_PREFIX = 'runs';

export const BLOBS_PREFIX = 'blobs';
export const blobKey = (sha256: string): string => fillTemplate(STORE_KEYS.blob, { sha256 });

export const runPrefix = (run: string): string => `${RUNS_PREFIX}/${run}`;
/** Original configuration, agent and versions of the run. Write-once. */
export const runKey = (run: string): string => `${runPrefix(run)}/run.json`;
/** `Prepared`. Write-once. */
export const preparedKey = (run: string): string => `${runPrefix(run)}/prepared.json`;
/** The blob with the token pieces of the base model's vocabulary; for display. Write-once. */
export const vocabularyKey = (run: string): string => fillTemplate(STORE_KEYS.vocabulary, { run });
/** A readable view of the scenarios' blob. */
export const scenariosKey = (run: string): string => `${runPrefix(run)}/scenarios.jsonl`;
export const scenarioPartsPrefix = (run: string): string => `${runPrefix(run)}/scenarios`;
/** Instead of the view, if they are stored in parts: a copy of their index, by its hash. Write-once. */
export const scenarioPartsKey = (run: string, sha256: string): string => `${scenarioPartsPrefix(run)}/${sha256}.json`;
/** For display; replaced after each step. */
export const stateKey = (run: string): string => `${runPrefix(run)}/state.json`;
/** The curve, `store/records/runs/curve.ts`. */
export const curvePrefix = (run: string): string => `${runPrefix(run)}/steps`;
export const curveFileKey = (run: string, branch: number, number: number): string =>
  `${curvePrefix(run)}/${branch}.${number}.jsonl`;

export const deploymentsPrefix = (run: string): string => `${runPrefix(run)}/deployments`;
const deploymentPrefix = (run: string, id: string): string => `${deploymentsPrefix(run)}/${id}`;
/** Checkpoint, target and options of a deployment. Write-once. */
export const deploymentKey = (run: string, id: string): string => `${deploymentPrefix(run, id)}/deployment.json`;
/** The outcome of a stage of a deployment. Write-once. */
export const deploymentStageKey = (run: string, id: string, stage: string): string =>
  `${deploymentPrefix(run, id)}/stages/${stage}.json`;
/** Stage in progress with its last failure, for display. */
export const deploymentStatusKey = (run: string, id: string): string => `${deploymentPrefix(run, id)}/status.json`;

/** Changes by `temper set`, in order from 1. Write-once. */
export const changesPrefix = (run: string): string => `${runPrefix(run)}/changes`;
export const changesKey = (run: string, number: number): string => `${changesPrefix(run)}/${number}.json`;

export const branchesPrefix = (run: string): string => `${runPrefix(run)}/branches`;
const branchPrefix = (run: string, branch: number): string => `${branchesPrefix(run)}/${branch}`;
/** Origin of a branch; branch 0 has none. Write-once. */
export const branchKey = (run: string, branch: number): string => `${branchPrefix(run, branch)}/branch.json`;
export const stepsPrefix = (run: string, branch: number): string => `${branchPrefix(run, branch)}/steps`;
export const stepPrefix = (place: StepPlace): string => fillTemplate(STORE_KEYS.step, place);

/** The commit of a step. Write-once. */
export const manifestKey = (place: StepPlace): string => fillTemplate(STORE_KEYS.manifest, place);
export const manifestTimesKey = (place: StepPlace): string => fillTemplate(STORE_KEYS.manifestTimes, place);
/** Position of the run after a step, and its costs. Write-once. */
export const positionKey = (place: StepPlace): string => `${stepPrefix(place)}/position.json`;
/** That weights and optimizer state were removed on purpose. */
export const prunedKey = (place: StepPlace): string => fillTemplate(STORE_KEYS.pruned, place);
/** Numbers of each sampled token that the step trained; for display. */
export const tokenTraceKey = (place: StepPlace): string => fillTemplate(STORE_KEYS.tokens, place);
/** The view on a checkpoint's blobs. */
export const viewPrefix = (place: StepPlace): string => fillTemplate(STORE_KEYS.view, place);

/** Place of a group that a step trains: a group may have been dealt to an earlier step. */
export const placeOfGroup = (
  trained: StepPlace,
  { group, step = trained.step, branch = trained.branch }: Pick<GroupRef, 'group' | 'step' | 'branch'>,
): GroupPlace => ({ run: trained.run, branch, step, group });

export const groupsPrefix = (place: StepPlace): string => `${stepPrefix(place)}/groups`;
export const rolloutsKey = (place: GroupPlace): string => fillTemplate(STORE_KEYS.rollouts, place);
export const judgedKey = (place: GroupPlace): string => fillTemplate(STORE_KEYS.judged, place);
/** Judge's answers for a group, in order from 0, by the question's hash: the run paid for them. Write-once. */
export const groupAnswersPrefix = (place: GroupPlace): string => `${fillTemplate(STORE_KEYS.group, place)}.answers`;
export const groupAnswerKey = (place: GroupPlace, question: string, number: number): string =>
  `${groupAnswersPrefix(place)}/${question}.${number}.json`;
/** Question to a judge about a group, beside its answers: with the attempts it makes the prompt. Write-once. */
export const groupQuestionKey = (place: GroupPlace, question: string): string =>
  `${groupAnswersPrefix(place)}/${question}.question.json`;
/** Ledger of rewards that were given to a group from outside, in order from 0. Write-once. */
export const givenPrefix = (place: GroupPlace): string => `${fillTemplate(STORE_KEYS.group, place)}.given`;
export const givenKey = (place: GroupPlace, number: number): string => `${givenPrefix(place)}/${number}.json`;
export const groupTimesKey = (place: GroupPlace): string => `${fillTemplate(STORE_KEYS.group, place)}.times.json`;

/** Results of a step's groups, and which of them are trained. Write-once. */
export const stepVerdictKey = (place: StepPlace): string => fillTemplate(STORE_KEYS.verdict, place);

/** A group that a script's own loop played for an evaluation. */
export const validationKey = (place: GroupPlace): string =>
  `${stepPrefix(place)}/validation/${place.group}.rollouts.jsonl.gz`;
/** That a step of a script's own loop had nothing to train, and is over. Write-once. */
export const skippedKey = (place: StepPlace): string => `${stepPrefix(place)}/skipped.json`;

export const evalRolloutsKey = (place: StepPlace): string => `${stepPrefix(place)}/eval.rollouts.jsonl.gz`;
export const evalKey = (place: StepPlace): string => `${stepPrefix(place)}/eval.json`;
export const evalTimesKey = (place: StepPlace): string => `${stepPrefix(place)}/eval.times.json`;

export const journalsPrefix = (run: string): string => `${runPrefix(run)}/journal`;
export const stepJournalPrefix = ({ run, branch, step }: StepPlace): string =>
  `${journalsPrefix(run)}/${branch}.${step}`;
export const groupJournalPrefix = (place: GroupPlace): string => `${stepJournalPrefix(place)}/${place.group}`;
export const validationJournalPrefix = (place: GroupPlace): string =>
  `${stepJournalPrefix(place)}/validation-${place.group}`;
export const evalJournalPrefix = (place: StepPlace): string => `${stepJournalPrefix(place)}/eval`;

export const replaysPrefix = (run: string): string => `${runPrefix(run)}/replays`;
/** An attempt that was played anew from one of its turns on: never trained, and in no metric. Write-once. */
export const replayKey = (run: string, id: string): string => `${replaysPrefix(run)}/${id}.rollouts.jsonl.gz`;

export const outboundPrefix = (run: string): string => `${runPrefix(run)}/outbound`;
/** What a target has of the run. Replaced after each delivery; in no hash, and not copied. */
export const outboundCursorKey = (run: string, target: string): string => `${outboundPrefix(run)}/${target}.json`;

export const SCHEDULES_PREFIX = 'schedules';
export const firingsPrefix = (schedule: string): string => `${SCHEDULES_PREFIX}/${schedule}`;
/** Configuration of the schedule, with references of its future runs. Replaced if it is created anew. */
export const scheduleKey = (schedule: string): string => `${firingsPrefix(schedule)}/schedule.json`;
/** Run of a firing, with its parent. Write-once. */
export const firingKey = (schedule: string, number: number): string => `${firingsPrefix(schedule)}/${number}.json`;
/** Final checkpoint of a firing that succeeded. Write-once. */
export const conclusionKey = (schedule: string, number: number): string =>
  `${firingsPrefix(schedule)}/${number}.concluded.json`;

/** Recorded conversations that a firing's run trains. Write-once. */
export const chosenKey = (schedule: string, number: number): string =>
  `${firingsPrefix(schedule)}/${number}.chosen.json`;
/** Why the last firing trained nothing, for display. */
export const waitingKey = (schedule: string): string => `${firingsPrefix(schedule)}/waiting.json`;

export const deletionPrefix = (run: string): string => `deletions/${run}`;
/** That a run is being deleted: its name stays taken until all of it is gone. */
export const deletionKey = (run: string): string => `${deletionPrefix(run)}/deletion.json`;

/** Judge's verdict, by the question's hash; shared by the store's runs. Write-once. */
export const verdictKey = (sha256: string): string => `judgments/${sha256}.json`;

/** Folder of what a command generates with hosted models; `work` names the source that it generates from. */
const generatedPrefix = (work: string): string => `generated/${work}`;
/** Hosted models' answers, by the hash of label and request: none is paid for twice. Write-once. */
export const hostedAnswersPrefix = (work: string): string => `${generatedPrefix(work)}/answers`;
export const hostedAnswerKey = (work: string, sha256: string): string => `${hostedAnswersPrefix(work)}/${sha256}.json`;
/** Tools and resources that scenarios are made for. Write-once. */
export const toolServerKey = (work: string): string => `${generatedPrefix(work)}/server.json`;
/** Outcome of one attempt at a proposed scenario. Write-once. */
export const triedKey = (work: string, attempt: string): string => `${generatedPrefix(work)}/tried/${attempt}.json`;
export const triedJournalPrefix = (work: string, attempt: string): string =>
  `${generatedPrefix(work)}/journal/${attempt}`;
/** That a file of this content was generated, and may be replaced as long as nobody edited it. Write-once. */
export const generatedFileKey = (sha256: string): string => `generated-files/${sha256}.json`;

export const PRODUCTION_PREFIX = 'production';
/** Recordings of `temper serve` under a run's name, feedback on them, and which checkpoint is the run's production. */
export const productionPrefix = (run: string): string => `${PRODUCTION_PREFIX}/${run}`;
export const recordingsPrefix = (run: string): string => `${productionPrefix(run)}/recordings`;
/** Journal of one process for at most an hour; its name begins with the time. */
export const recordingChunkPrefix = (run: string, chunk: string): string => `${recordingsPrefix(run)}/${chunk}`;
/** Before its first record: this host may have records that a bucket has not yet. Write-once. */
export const recordingChunkKey = (run: string, chunk: string): string =>
  `${recordingChunkPrefix(run, chunk)}/chunk.json`;
export const namedConversationsPrefix = (run: string): string => `${productionPrefix(run)}/named`;
/** That a conversation with a client's own name for it was recorded. Write-once. */
export const namedConversationKey = (run: string, conversation: string): string =>
  `${namedConversationsPrefix(run)}/${conversation}.json`;
export const feedbackPrefix = (run: string): string => `${productionPrefix(run)}/feedback`;
/** Feedback on a conversation, in order from 0; the last file may say that it was trained. Write-once. */
export const conversationFeedbackPrefix = (run: string, conversation: string): string =>
  `${feedbackPrefix(run)}/${conversation}`;
export const feedbackKey = (run: string, conversation: string, number: number): string =>
  `${conversationFeedbackPrefix(run, conversation)}/${number}.json`;
/** Which checkpoint is the run's production from now on, and why; in order from 1. Write-once. */
export const promotionKey = (run: string, number: number): string =>
  `${productionPrefix(run)}/promotions/${number}.json`;

export const SERVERS_PREFIX = 'servers';
export const serverPrefix = (id: string): string => `${SERVERS_PREFIX}/${id}`;
/** Replaced every minute by a process that serves checkpoints, and removed at its end. */
export const serverKey = (id: string): string => `${serverPrefix(id)}/server.json`;

export const LEASES_PREFIX = 'leases';
export const leasesPrefix = (agent: string): string => `${LEASES_PREFIX}/${agent}`;
/** Folder of a lease; `owner` is the same for all that a retry has to end. */
export const leasePrefix = (agent: string, owner: string, id: string): string =>
  `${leasesPrefix(agent)}/${owner}.${id}`;
/** Before the resource is made. Write-once. */
export const leaseKey = (prefix: string): string => `${prefix}/lease.json`;
/** JSON that the resource's setup recorded. Write-once. */
export const leaseDataKey = (prefix: string): string => `${prefix}/data.json`;
/** The last failure of teardown. */
export const leaseFailureKey = (prefix: string): string => `${prefix}/failure.json`;
export const holdersPrefix = (agent: string): string => `${leasesPrefix(agent)}/holders`;
export const holderPrefix = (agent: string, holder: string): string => `${holdersPrefix(agent)}/${holder}`;
/** Replaced every few seconds by a process that holds leases. */
export const holderKey = (agent: string, holder: string): string => `${holderPrefix(agent, holder)}/holder.json`;
/** That its leases were ended by others, who took it for dead. Write-once. */
export const holderEndedKey = (agent: string, holder: string): string => `${holderPrefix(agent, holder)}/ended.json`;
