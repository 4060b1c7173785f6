/** A page that fails takes nothing else with it. */
import { Component, type ComponentChildren } from 'preact';
import { Failed } from './small.tsx';

interface BoundaryProps {
  /** Another page starts anew. */
  readonly place: string;
  readonly children: ComponentChildren;
}

export class PageBoundary extends Component<BoundaryProps, { failed: Error | null }> {
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
