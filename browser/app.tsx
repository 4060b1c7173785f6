/** Which page is at which path. */
import { Component, type ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import { Route, Router, Switch } from 'wouter-preact';
import { followEvents } from './live.ts';
import { useHashPath, useQuery } from './location.ts';
import { AttemptPage } from './pages/attempt.tsx';
import { ChatPage } from './pages/chat.tsx';
import { CheckpointsPage } from './pages/checkpoints.tsx';
import { ComparePage } from './pages/compare.tsx';
import { EvaluationPage } from './pages/evaluation.tsx';
import { GroupPage } from './pages/group.tsx';
import { RunPage } from './pages/run.tsx';
import { RunsPage } from './pages/runs.tsx';
import { SchedulesPage } from './pages/schedules.tsx';
import { SearchPage } from './pages/search.tsx';
import { StepPage } from './pages/step.tsx';
import { Frame } from './parts/frame.tsx';
import { Failed } from './parts/small.tsx';
import { allTerms } from './glossary.ts';

export function App() {
  useEffect(followEvents, []);
  const [path] = useHashPath();
  return (
    <Router hook={useHashPath}>
      <Frame>
        <PageBoundary place={path}>
          <Switch>
            <Route path="/">{() => <RunsPage />}</Route>
            <Route path="/compare">{() => <ComparePage />}</Route>
            <Route path="/evaluation">{() => <EvaluationPage />}</Route>
            <Route path="/schedules">{() => <SchedulesPage />}</Route>
            <Route path="/glossary">{() => <GlossaryPage />}</Route>
            <Route path="/runs/:run">{({ run }) => <RunPage key={run} run={run} />}</Route>
            <Route path="/runs/:run/attempts">{({ run }) => <SearchPage key={run} run={run} />}</Route>
            <Route path="/runs/:run/attempts/:id">{({ run, id }) => <AttemptPage run={run} id={id} />}</Route>
            <Route path="/runs/:run/groups/:id">{({ run, id }) => <GroupPage run={run} id={id} />}</Route>
            <Route path="/runs/:run/steps/:step">{({ run, step }) => <StepPage run={run} step={Number(step)} />}</Route>
            <Route path="/runs/:run/checkpoints">{({ run }) => <CheckpointsPage run={run} />}</Route>
            <Route path="/runs/:run/chat">{({ run }) => <ChatPage run={run} />}</Route>
            <Route>
              {() => (
                <div class="empty">
                  <h1>There is no page at this address</h1>
                  <a href="#/">All runs</a>
                </div>
              )}
            </Route>
          </Switch>
        </PageBoundary>
      </Frame>
    </Router>
  );
}

interface BoundaryProps {
  /** Another page starts anew. */
  readonly place: string;
  readonly children: ComponentChildren;
}

/** A page that fails takes nothing else with it. */
class PageBoundary extends Component<BoundaryProps, { failed: Error | null }> {
  override state: { failed: Error | null } = { failed: null };

  override componentDidCatch(error: Error): void {
    this.setState({ failed: error });
  }

  override componentDidUpdate(before: BoundaryProps): void {
    if (before.place !== this.props.place && this.state.failed !== null) this.setState({ failed: null });
  }

  override render() {
    const { failed } = this.state;
    return failed === null ? this.props.children : <Failed what="this page" message={failed.message} />;
  }
}

/** docs/glossary.md as a page: terms with what they mean. */
function GlossaryPage() {
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
