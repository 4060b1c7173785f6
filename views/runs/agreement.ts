import { REVIEW } from '../../core/rules/external-rewards.ts';
import { readAgreement } from '../../store/records/rewards/review-agreement.ts';
import type { AgreementView } from '../api/run-views.ts';
import type { ViewContext } from '../context/context.ts';
import { requireHead } from './run-cache.ts';

export async function viewAgreement(context: ViewContext, run: string): Promise<AgreementView> {
  const { file, state } = await requireHead(context, run);
  const isReviewed = file.config.judge === REVIEW && state !== null;
  return { agreement: isReviewed ? await readAgreement(context.store, state) : null };
}
