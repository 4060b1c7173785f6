export { estimateMean, estimateShare, type Estimate } from '../../core/estimates.ts';
