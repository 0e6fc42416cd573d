import { Anchor } from '@mantine/core'
import { Link } from 'wouter'

/** The id of a query, as a link to its page. */
export function QueryLink({ queryId }: { readonly queryId: string }) {
  return (
    <Anchor component={Link} href={`/query/${queryId}`} className="id" size="sm">
      {queryId}
    </Anchor>
  )
}
