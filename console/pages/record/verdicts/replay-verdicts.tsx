import { EXPLANATIONS } from '../../../parts/explanations.ts'
import { Button, Group, NativeSelect, Text, TextInput } from '@mantine/core'
import { useEffect, useState } from 'react'
import { DataTable, type Column } from '../../../parts/data-table.tsx'
import { Facts } from '../../../parts/facts.tsx'
import { Problem } from '../../../parts/problem.tsx'
import { QueryLink } from '../../../parts/query-link.tsx'
import { Section } from '../../../parts/section.tsx'
import { countedAs, shownCount, shownDuration } from '../../../parts/units.ts'
import { readVerdicts, type ReadVerdicts, type ShownVerdict, type VerdictFilter } from './read-verdicts.ts'
import { VerdictDetails } from './verdict-details.tsx'

/** The verdicts of a replay or a shadow, from the file that the command wrote. The file stays in the browser. */
export function ReplayVerdicts() {
  const [file, setFile] = useState<File>()
  const [filter, setFilter] = useState<VerdictFilter>({ verdict: 'BAD', text: '' })
  const [found, setFound] = useState<ReadVerdicts>()
  const [error, setError] = useState<Error>()
  const [selected, setSelected] = useState<ShownVerdict>()
  useEffect(() => {
    if (!file) return
    let current = true
    readVerdicts(file, filter).then(
      (read) => {
        if (!current) return
        setFound(read)
        setError(undefined)
      },
      (failure: unknown) => current && setError(failure as Error),
    )
    return () => {
      current = false
    }
  }, [file, filter])
  return (
    <Section title="Verdicts of a replay">
      <Text size="sm">
        Open the file that quipu replay or quipu shadow wrote with --json. The file stays in the browser.
      </Text>
      <label>
        <Text size="sm" span>
          Verdict file{' '}
        </Text>
        <input
          type="file"
          accept=".jsonl,.json"
          onChange={(event) => {
            setFile(event.currentTarget.files?.[0])
            setFound(undefined)
            setSelected(undefined)
          }}
        />
      </label>
      {error ? <Problem error={error} /> : null}
      {file && found ? (
        <>
          <VerdictCounts found={found} />
          <FilterForm filter={filter} found={found} onFilter={setFilter} />
          <Text size="sm" role="status">
            {shownMatches(found)}
          </Text>
          <DataTable
            label="Verdicts"
            columns={columnsOf(setSelected)}
            rows={found.lines}
            rowKey={({ line }) => line.queryId}
            empty="No verdict matches."
          />
          {selected ? <VerdictDetails shown={selected} /> : null}
        </>
      ) : null}
    </Section>
  )
}

function VerdictCounts({ found: { counts, unknown } }: { readonly found: ReadVerdicts }) {
  const facts = [...counts].map(([verdict, count]) => [verdict, shownCount(count)] as const)
  const others = unknown > 0 ? [['lines that are no verdict', shownCount(unknown)] as const] : []
  return <Facts title="Statements by verdict" facts={[...facts, ...others]} />
}

function FilterForm({
  filter,
  found,
  onFilter,
}: {
  readonly filter: VerdictFilter
  readonly found: ReadVerdicts
  readonly onFilter: (filter: VerdictFilter) => void
}) {
  return (
    <Group align="end" gap="xs" my="xs">
      <NativeSelect
        label="Verdict"
        value={filter.verdict}
        data={[
          { value: 'BAD', label: 'the servers differ' },
          { value: '', label: 'all' },
          ...[...found.counts.keys()].map((verdict) => ({ value: verdict, label: verdict })),
        ]}
        onChange={(event) => onFilter({ ...filter, verdict: event.currentTarget.value })}
      />
      <TextInput
        label="Text"
        title="Part of an id, a user, a program, a fingerprint, an outcome or a statement"
        value={filter.text}
        onChange={(event) => onFilter({ ...filter, text: event.currentTarget.value })}
      />
    </Group>
  )
}

function shownMatches({ matching, lines }: ReadVerdicts): string {
  const first = matching > lines.length ? `, the first ${shownCount(lines.length)} are shown` : ''
  return `${countedAs(matching, 'statement')}${first}`
}

function columnsOf(onSelect: (shown: ShownVerdict) => void): readonly Column<ShownVerdict>[] {
  return [
    { id: 'verdict', title: 'Verdict', value: ({ line }) => line.verdict },
    {
      id: 'query',
      title: 'Query',
      value: ({ line }) => line.queryId,
      cell: ({ line }) => <QueryLink queryId={line.queryId} />,
    },
    {
      id: 'outcome',
      title: 'Outcome',
      value: ({ outcome }) => outcome,
      cell: ({ outcome }) => <span className="cell">{outcome.slice(0, LONGEST_OUTCOME)}</span>,
    },
    { id: 'user', title: 'User', value: ({ line }) => line.user },
    { id: 'app', title: 'Program', value: ({ line }) => line.app },
    {
      id: 'here',
      title: 'Here',
      numeric: true,
      explanation: EXPLANATIONS.recordedTime,
      value: ({ line }) => hereMsOf(line),
      cell: ({ line }) => shownMillis(hereMsOf(line)),
    },
    {
      id: 'there',
      title: 'There',
      numeric: true,
      explanation: EXPLANATIONS.otherTime,
      value: ({ line }) => line.thereMs,
      cell: ({ line }) => shownMillis(line.thereMs),
    },
    {
      id: 'show',
      title: 'Differences',
      cell: (shown) => (
        <Button
          size="compact-sm"
          variant="default"
          aria-label={`Show the differences of ${shown.line.queryId}`}
          onClick={() => onSelect(shown)}
        >
          Show
        </Button>
      ),
    },
  ]
}

const LONGEST_OUTCOME = 300

function hereMsOf({ recordedMs, hereMs }: ShownVerdict['line']): number | undefined {
  return recordedMs ?? hereMs
}

function shownMillis(ms: number | undefined): string {
  return ms === undefined ? '' : shownDuration(ms * 1e6)
}
