/** Buttons at the end of an action's dialog, in each of its stages. */
import { useEffect, useState } from 'preact/hooks';
import type { ActionForm, ActionResult } from '../../views/api/requests.ts';

export type ActionStage =
  | { readonly at: 'form'; readonly problem: string | null }
  | { readonly at: 'asking' }
  | { readonly at: 'confirm'; readonly plan: ActionResult; readonly problem: string | null }
  | { readonly at: 'doing'; readonly plan: ActionResult }
  | { readonly at: 'done'; readonly result: ActionResult };

/** What had the focus has gone: without a new place, the next key would go to the page below. */
export const focusWhenShown = (element: HTMLElement | null): void => element?.focus();

interface ButtonsProps {
  readonly stage: ActionStage;
  readonly form: ActionForm;
  readonly hasForm: boolean;
  readonly onAsk: () => Promise<void>;
  readonly onAct: (plan: ActionResult) => Promise<void>;
  readonly onBack: () => void;
  readonly onClose: () => void;
}

export function ActionButtons({ stage, form, hasForm, onAsk, onAct, onBack, onClose }: ButtonsProps) {
  if (stage.at === 'done')
    return (
      <button key="close" type="button" class="primary" ref={focusWhenShown} onClick={onClose}>
        Close
      </button>
    );
  if (stage.at === 'form' || stage.at === 'asking')
    return (
      <>
        <button key="cancel" type="button" onClick={onClose}>
          Cancel
        </button>
        <PressButton key="continue" className="primary" isOff={stage.at === 'asking'} onPress={() => void onAsk()}>
          Continue
        </PressButton>
      </>
    );
  const isDoing = stage.at === 'doing';
  return (
    <>
      <PressButton key="back" isOff={isDoing} onPress={hasForm ? onBack : onClose}>
        {hasForm ? 'Back' : 'Cancel'}
      </PressButton>
      <ConfirmButton
        key="confirm"
        className={form.isDangerous ? 'danger' : 'primary'}
        isOff={isDoing}
        onPress={() => void onAct(stage.plan)}
      >
        {form.label}
      </ConfirmButton>
    </>
  );
}

interface PressProps {
  readonly className?: string;
  readonly isOff: boolean;
  readonly onPress: () => void;
  readonly children: string;
}

/** Keeps the focus while it is off, which a disabled button loses. */
function PressButton({ className, isOff, onPress, children }: PressProps) {
  return (
    <button type="button" class={className} aria-disabled={isOff} onClick={() => !isOff && onPress()}>
      {children}
    </button>
  );
}

/** Longer than the clicks of a double click are apart. */
const SEEN_AFTER_MS = 800;

/** It comes to where "Continue" was: the second click of a double click, or a held key, must not confirm what nobody has read. */
function ConfirmButton({ isOff, ...props }: PressProps) {
  const isSeen = useLater(SEEN_AFTER_MS);
  return <PressButton {...props} isOff={isOff || !isSeen} />;
}

/** False at first, true once the part was on the page for that long. */
function useLater(afterMs: number): boolean {
  const [isLater, setLater] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLater(true), afterMs);
    return () => clearTimeout(timer);
  }, []);
  return isLater;
}
