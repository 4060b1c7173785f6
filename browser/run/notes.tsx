/** Notes of a run about itself, newest first. */
import { Empty } from '../parts/small.tsx';

export function RunNotes({ notes }: { notes: readonly string[] }) {
  if (notes.length === 0)
    return <Empty title="No notes">A run notes skipped steps, recoveries and changes here.</Empty>;
  return (
    <ol class="card note-list" reversed>
      {notes.toReversed().map((note, at) => (
        <li key={notes.length - at}>{note}</li>
      ))}
    </ol>
  );
}
