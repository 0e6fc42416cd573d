import { Button } from '@mantine/core'
import { Component, type ReactNode } from 'react'
import { Problem } from '../parts/problem.tsx'

/**
 * Shows the error of a page in place of the page; the navigation stays usable. A page also fails if the server has
 * another version by now: then it no longer has the code of the page.
 */
export class PageBoundary extends Component<{ readonly children: ReactNode }, { readonly error?: Error }> {
  override state: { readonly error?: Error } = {}

  static getDerivedStateFromError(error: Error) {
    return { error }
  }

  override render() {
    const { error } = this.state
    if (!error) return this.props.children
    return (
      <>
        <h1>The page failed</h1>
        <Problem error={error} />
        <Button mt="md" onClick={() => location.reload()}>
          Reload the page
        </Button>
      </>
    )
  }
}
