import type { QueryInfo } from '../../../src/protocol/info/schemas/query.ts'

/** Names the user who killed or canceled the query, where the viewer may see it. */
export function EndedBy({ by }: { readonly by: QueryInfo['endedBy'] }) {
  if (!by) return null
  const name = by.originalUser ? `${by.originalUser} as ${by.user}` : by.user
  return (
    <div>
      by {name}
      {by.remoteAddress ? ` from ${by.remoteAddress}` : ''}
    </div>
  )
}
