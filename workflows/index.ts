export { deployCheckpoint } from './deploy.ts';
export { retrain } from './retrain.ts';
export { trackRun } from './track-run.ts';
export { trainRun } from './train-run.ts';
export { trainStep } from './train-step.ts';
