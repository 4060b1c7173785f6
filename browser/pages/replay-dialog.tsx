/** Replays an attempt from one of its turns with another model: a new attempt beside the old one. */
import type { AttemptView } from '../../views/api/attempt-views.ts';
import { ActionDialog } from '../parts/action-dialog.tsx';

interface ReplayProps {
  readonly run: string;
  readonly attempt: AttemptView;
  readonly fromTurn: number;
  readonly onClose: () => void;
}

export function ReplayDialog({ run, attempt, fromTurn, onClose }: ReplayProps) {
  return (
    <ActionDialog
      title={`Replay attempt ${attempt.row.id} from turn ${fromTurn + 1}`}
      start={{ action: 'replay', input: { run, attempt: attempt.row.id, fromTurn } }}
      values={{ model: attempt.policy ?? '' }}
      onClose={onClose}
    />
  );
}
