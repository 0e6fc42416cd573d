import { Button, Code, Group, NativeSelect, Text, TextInput, Title } from '@mantine/core'
import type { FormEvent } from 'react'
import { useSearchParams } from 'wouter'
import { useRows } from '../../api/statement/use-rows.ts'
import { Disclosure } from '../../parts/disclosure.tsx'
import { Instant } from '../../parts/instant.tsx'
import { JsonText } from '../../parts/json-text.tsx'
import { Problem } from '../../parts/problem.tsx'
import { shownAmount, shownCount, shownDuration, shownSize } from '../../parts/units.ts'
import { QueryLink } from '../../parts/query-link.tsx'
import { RowsTable } from '../../parts/rows-table.tsx'
import { useFieldValues } from '../../parts/use-field-values.ts'
import { usePageTitle } from '../../shell/use-page-title.ts'
import { RECORD_COLUMNS } from '../../parts/explanations.ts'
import { Audits, AUDITS } from './audits.tsx'
import { RECORD_VIEWS, type RecordView } from './record-views.ts'
import { ReplayVerdicts } from './verdicts/replay-verdicts.tsx'

const DAYS = ['1', '7', '30', '90', '365']

/**
 * Questions to the record, and the audits of the log. Each question is a statement over `system.history` with the rights of
 * the user.
 */
export function RecordPage() {
  usePageTitle('Record')
  const [search, setSearch] = useSearchParams()
  const isAudits = search.get('view') === AUDITS.id
  const view = RECORD_VIEWS.find(({ id }) => id === search.get('view')) ?? RECORD_VIEWS[0]
  return (
    <>
      <Title order={1} size="h2">
        Record
      </Title>
      <NativeSelect
        label="Question"
        my="xs"
        maw="20rem"
        value={isAudits ? AUDITS.id : view.id}
        data={[...RECORD_VIEWS, AUDITS].map(({ id, title }) => ({ value: id, label: title }))}
        onChange={(event) => setSearch({ view: event.currentTarget.value })}
      />
      {isAudits ? <Audits /> : <Question key={view.id} view={view} search={search} onAsk={setSearch} />}
    </>
  )
}

/** A question with its fields, and the rows of the answer. */
function Question({
  view,
  search,
  onAsk,
}: {
  readonly view: RecordView
  readonly search: URLSearchParams
  readonly onAsk: (search: URLSearchParams) => void
}) {
  const given = new Map([...search].filter(([, value]) => value !== ''))
  const isComplete = view.fields.every(({ name, required }) => required === undefined || given.has(name))
  const sql = isComplete ? view.sql(given) : undefined
  const { data, error, isFetching, refetch } = useRows(sql)
  return (
    <>
      <Text size="sm">{view.explanation}</Text>
      <Fields
        view={view}
        search={search}
        onAsk={(next) => {
          if (next.toString() === search.toString()) void refetch()
          else onAsk(next)
        }}
      />
      {isComplete && sql === undefined ? (
        <Text size="sm" role="alert">
          A table is named catalog.schema.table; a name with a dot is in double quotes.
        </Text>
      ) : null}
      {isFetching ? <Text size="sm">The record is being read.</Text> : null}
      {error ? <Problem error={error} /> : null}
      {data && sql !== undefined && !error ? (
        <>
          <RowsTable
            columns={data.columns}
            rows={data.rows}
            show={shownValue}
            explanations={RECORD_COLUMNS}
            empty="The record has nothing for this question that you may see."
          />
          <details>
            <summary>The statement of this question</summary>
            <Code block className="sql" tabIndex={0}>
              {sql}
            </Code>
          </details>
        </>
      ) : null}
      {view.id === 'replays' ? <ReplayVerdicts /> : null}
    </>
  )
}

function Fields({
  view,
  search,
  onAsk,
}: {
  readonly view: RecordView
  readonly search: URLSearchParams
  readonly onAsk: (search: URLSearchParams) => void
}) {
  const valueOf = (name: string) => search.get(name) ?? defaultOf(view, name)
  const form = useFieldValues(valueOf, search.toString())
  function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault()
    const given = [...new FormData(event.currentTarget)].map(([name, value]) => [name, String(value)])
    onAsk(new URLSearchParams([['view', view.id], ...given.filter(([, value]) => value !== '')]))
  }
  return (
    <form ref={form} onSubmit={submit}>
      <Group align="end" gap="xs" my="xs">
        {view.fields.map(({ name, label, required, choices }) =>
          choices ? (
            <NativeSelect key={name} name={name} label={label} defaultValue={valueOf(name)} data={[...choices]} />
          ) : (
            <TextInput key={name} name={name} label={label} required={required === true} defaultValue={valueOf(name)} />
          ),
        )}
        <NativeSelect label="Days" title="How many days back" name="days" defaultValue={valueOf('days')} data={DAYS} />
        <Button type="submit" variant="default">
          Ask
        </Button>
      </Group>
    </form>
  )
}

/** The value of a field until the user chooses another. */
function defaultOf({ fields, days = 1 }: RecordView, name: string): string {
  return name === 'days' ? String(days) : (fields.find((field) => field.name === name)?.choices?.[0] ?? '')
}

/** Ids of queries as links, data of events once they are opened, times in the zone of the page. */
function shownValue({ name, type }: { readonly name: string; readonly type: string }, text: string) {
  if (name === 'query_id' || (name === 'stream' && /^\d{8}_/.test(text))) return <QueryLink queryId={text} />
  if (name === 'data') return <Disclosure content={() => <JsonText value={parsed(text)} />} />
  const cell = shownFigure(name, text)
  if (cell !== undefined) return cell
  if (!/^timestamp.* with time zone$/.test(type) || !text.endsWith(' UTC')) return undefined
  return <Instant iso={`${text.slice(0, -4).replace(' ', 'T')}Z`} />
}

/** Seconds and bytes in units that people read. */
function shownFigure(name: string, text: string): string | undefined {
  if (name === 'cpu_seconds') return shownDuration(Number(text) * 1e9)
  if (name === 'scanned_bytes' || name === 'bytes') return shownSize(Number(text))
  if (name === 'cost') return shownAmount(Number(text))
  return name === 'queries' || name === 'row_count' ? shownCount(Number(text)) : undefined
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return json
  }
}
