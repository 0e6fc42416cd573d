import { cancelQuery, killQuery } from '../../api/queries.ts'
import { Confirmed } from '../../parts/confirmed.tsx'

/** Ends a running query: cancels it, or kills it with a reason that its error shows. */
export function EndActions({ queryId }: { readonly queryId: string }) {
  const changes = ['query', queryId]
  return (
    <>
      <Confirmed
        button="Cancel"
        confirm="Cancel the query"
        title={`Cancel query ${queryId}`}
        text="The query ends as if its client had canceled it."
        act={() => cancelQuery(queryId)}
        changes={changes}
      />
      <Confirmed
        button="Kill"
        title={`Kill query ${queryId}`}
        text="The query fails with ADMINISTRATIVELY_KILLED."
        reason="The error of the query shows it"
        danger
        act={(reason) => killQuery(queryId, reason)}
        changes={changes}
      />
    </>
  )
}
