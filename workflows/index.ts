export { retrain } from './retrain.ts';
export { trainRun } from './train-run.ts';
export { trainStep } from './train-step.ts';
