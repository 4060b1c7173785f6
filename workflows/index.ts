export { retrain } from './retrain.ts';
export { trainRun } from './train-run.ts';
