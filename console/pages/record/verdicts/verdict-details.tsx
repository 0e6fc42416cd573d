import { Code, Table } from '@mantine/core'
import type { ReplayLine } from '../../../../src/replay/replay-line.ts'
import { Facts } from '../../../parts/facts.tsx'
import { QueryLink } from '../../../parts/query-link.tsx'
import { Section } from '../../../parts/section.tsx'
import type { ShownVerdict } from './read-verdicts.ts'

/** What both servers gave for a statement, side by side. */
export function VerdictDetails({ shown: { line, outcome } }: { readonly shown: ShownVerdict }) {
  return (
    <Section title={`Differences of ${line.queryId}`}>
      <Facts
        title="Statement"
        facts={[
          ['Verdict', line.verdict],
          ['Outcome', outcome],
          ['Query here', <QueryLink key="here" queryId={line.queryId} />],
          ['Query there', line.thereQueryId],
          ['Fingerprint', line.fingerprint],
          ['User', line.user],
          ['Program', line.app],
        ]}
      />
      {line.sql === undefined ? null : (
        <Code block className="sql" tabIndex={0}>
          {line.sql}
        </Code>
      )}
      <SideBySide rows={knownPairs(line)} />
    </Section>
  )
}

type Pair = readonly [here: string | undefined, there: string | undefined]

function SideBySide({ rows }: { readonly rows: readonly Pair[] }) {
  if (rows.length === 0) return null
  return (
    <Table layout="fixed" aria-label="Here and there">
      <Table.Thead>
        <Table.Tr>
          <Table.Th>Here</Table.Th>
          <Table.Th>There</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {rows.map(([here, there], index) => (
          <Table.Tr key={index}>
            {[here, there].map((text, side) => (
              <Table.Td key={side}>
                <span className="sql">{here === there ? text : <strong>{text}</strong>}</span>
              </Table.Td>
            ))}
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  )
}

/** The parts of both sides; none for a line that does not have the form of this version. */
function knownPairs(line: ReplayLine): readonly Pair[] {
  try {
    return pairsOf(line)
  } catch {
    return []
  }
}

/** The differing parts of both sides: rows, columns, nodes of plans, numbers of rows, or errors. */
function pairsOf(line: ReplayLine): readonly Pair[] {
  const { examples = [] } = line
  const sideOf = (side: 'here' | 'there') => examples.filter((one) => one.side === side).map(({ row }) => rowText(row))
  return [...partsOf(line), ...paired(sideOf('here'), sideOf('there'))]
}

function partsOf(line: ReplayLine): readonly Pair[] {
  const errors = [errorOf('here', line), errorOf('there', line)] as const
  if (errors[0] !== undefined || errors[1] !== undefined) return [errors]
  if (!('difference' in line) || !line.difference) return []
  const { difference } = line
  switch (difference.kind) {
    case 'columns':
    case 'plan':
      return paired(difference.here, difference.there)
    case 'rows':
    case 'digest':
      return [[`${difference.here} rows`, `${difference.there} rows`]]
    case 'values':
    case 'floating':
      return []
  }
}

function errorOf(side: 'here' | 'there', line: ReplayLine): string | undefined {
  const error = side in line ? (line as Readonly<Record<string, unknown>>)[side] : undefined
  if (typeof error !== 'object' || error === null) return undefined
  const { name, message } = error as { readonly name?: unknown; readonly message?: unknown }
  return `${String(name)}: ${String(message)}`
}

function paired(here: readonly string[], there: readonly string[]): readonly Pair[] {
  return Array.from({ length: Math.max(here.length, there.length) }, (_, i) => [here[i], there[i]] as const)
}

function rowText(row: readonly (string | null)[]): string {
  return row.map((value) => value ?? 'NULL').join(' | ')
}
