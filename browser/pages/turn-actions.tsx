/** Actions on a recorded call: ask the same again, or replay the attempt from here. */
import { useState } from 'preact/hooks';
import type { AttemptView } from '../../views/api/attempt-views.ts';
import { curlCommand, type RecordedRequest } from '../attempt/curl.ts';
import { getJson } from '../data.ts';
import { ActionDialog } from '../parts/action-dialog.tsx';

interface TurnActionsProps {
  readonly path: string;
  readonly attempt: AttemptView;
  readonly index: number;
  readonly onReplay: () => void;
}

/** The used members of `…/raw`. */
interface RawAttempt {
  readonly calls: readonly { readonly request: RecordedRequest }[];
}

export function TurnActions({ path, attempt, index, onReplay }: TurnActionsProps) {
  const [said, setSaid] = useState('');
  const copy = async (): Promise<void> => {
    try {
      const raw = await getJson<RawAttempt>(`${path}/raw`);
      const request = raw.calls[attempt.turns[index]!.call]?.request;
      if (request === undefined) throw new Error('the record has no such call');
      await navigator.clipboard.writeText(curlCommand(request, attempt.policy ?? 'MODEL'));
      setSaid('Copied');
    } catch (error) {
      setSaid((error as Error).message);
    }
  };
  return (
    <>
      <span class="note" role="status">
        {said}
      </span>
      <button type="button" class="quiet" onClick={() => void copy()}>
        Copy as curl
      </button>
      <button type="button" class="quiet" onClick={onReplay}>
        Replay from here
      </button>
    </>
  );
}

interface ReplayProps {
  readonly run: string;
  readonly attempt: AttemptView;
  readonly fromTurn: number;
  readonly onClose: () => void;
}

/** Replays an attempt from one of its turns with another model: a new attempt beside the old one. */
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
