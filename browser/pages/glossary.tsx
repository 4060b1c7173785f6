/** docs/glossary.md as a page: terms with what they mean. */
import { useEffect } from 'preact/hooks';
import { allTerms } from '../glossary.ts';
import { useQuery } from '../location.ts';

export function GlossaryPage() {
  const [query] = useQuery();
  const asked = query.get('term');
  useEffect(() => document.querySelector('.glossary .is-asked')?.scrollIntoView({ block: 'center' }), [asked]);
  return (
    <>
      <h1>Glossary</h1>
      <dl class="card padded glossary">
        {allTerms().map(({ term, text }) => (
          <div key={term} class={term === asked ? 'is-asked' : ''}>
            <dt>{term}</dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
    </>
  );
}
