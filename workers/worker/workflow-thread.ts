/** How long the thread of workflows may compute at a stretch. */

/**
 * The SDK gives an activation five seconds of the clock, and Node aborts the whole process where that runs out within an
 * asynchronous function (nodejs/node #38503, temporalio/sdk-typescript #939: "async hook stack has become corrupted").
 * Replaying a long history on a busy machine takes longer, and so does a process that was frozen meanwhile. Such a task is
 * only late: the server has given it to somebody else. The option is not in the SDK's types.
 */
export const PATIENT_THREAD = { isolateExecutionTimeout: '1 hour' };
