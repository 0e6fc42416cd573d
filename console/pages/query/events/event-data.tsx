import { useEvent } from '../../../api/query-events.ts'
import { Disclosure } from '../../../parts/disclosure.tsx'
import { JsonText } from '../../../parts/json-text.tsx'
import { Problem } from '../../../parts/problem.tsx'

/** The data of an event, read once it is opened. */
export function EventData(event: { readonly queryId: string; readonly sequence: number }) {
  return <Disclosure content={() => <OpenedData {...event} />} />
}

function OpenedData({ queryId, sequence }: { readonly queryId: string; readonly sequence: number }) {
  const { data, error } = useEvent(queryId, sequence)
  return error ? <Problem error={error} /> : <JsonText value={data?.data} />
}
