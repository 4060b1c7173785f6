/**
 * The bed that all files of a process play on, which ends with it: a worker takes 0.7 s of processor time to load the
 * bundle.
 */
import { inject } from 'vitest';

import { openTestBed } from './harness.ts';

export const bed = await openTestBed(inject('temporalAddress'), inject('workflowBundle'));
