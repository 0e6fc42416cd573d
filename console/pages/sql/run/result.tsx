import { Alert, Button, Group, Text } from '@mantine/core'
import { Problem } from '../../../parts/problem.tsx'
import { QueryLink } from '../../../parts/query-link.tsx'
import { RowsTable } from '../../../parts/rows-table.tsx'
import { StateBadge } from '../../../parts/state-badge.tsx'
import { countedAs, shownCount, shownDuration, shownSize } from '../../../parts/units.ts'
import { MOST_ROWS } from './row-window.ts'
import type { StatementRun } from './use-statement-run.ts'
import { Explained } from '../../../parts/explained.tsx'
import { EXPLANATIONS } from '../../../parts/explanations.ts'

/** The state, the error and the rows of the statement that was run. */
export function Result({ run, onMore }: { readonly run: StatementRun; readonly onMore: () => void }) {
  const { phase, answer, problem, columns, rows, firstRow } = run
  if (phase === 'idle') return null
  const isComplete = phase !== 'canceled' && !problem && !answer?.error
  return (
    <section aria-label="Result">
      <Progress run={run} />
      {problem ? <Problem error={problem} /> : null}
      {answer?.error ? (
        <Alert color="red" variant="outline" role="alert" title={answer.error.errorName} my="xs">
          {answer.error.message}
        </Alert>
      ) : null}
      {answer?.warnings.map((warning) => (
        <Alert key={warning} color="orange" variant="outline" my="xs">
          {warning}
        </Alert>
      ))}
      {answer?.updateType === undefined ? null : (
        <Text size="sm">
          {answer.updateType}
          {answer.updateCount === undefined ? null : (
            <>
              {': '}
              <Explained by={EXPLANATIONS.updateCount}>{countedAs(answer.updateCount, 'row')}</Explained>
            </>
          )}
        </Text>
      )}
      {phase === 'rows' || phase === 'reading' ? (
        // Above the rows, which are read from the first one on. It stays while the next rows are read, with the focus.
        <Button
          size="compact-sm"
          variant="default"
          aria-disabled={phase === 'reading'}
          onClick={phase === 'rows' ? onMore : undefined}
        >
          Next {shownCount(MOST_ROWS)} rows
        </Button>
      ) : null}
      {columns && (rows.length > 0 || isComplete) ? (
        <RowsTable
          key={firstRow}
          columns={columns}
          rows={rows}
          firstRow={firstRow}
          empty={phase === 'running' ? 'There are no rows yet.' : 'There are no rows.'}
        />
      ) : null}
    </section>
  )
}

function Progress({ run }: { readonly run: StatementRun }) {
  const { phase, queryId, answer, problem, rows, firstRow } = run
  if (!answer) {
    const text = phase === 'canceled' ? 'The statement was canceled.' : 'The statement is being sent.'
    return problem ? null : <Text size="sm">{text}</Text>
  }
  const { stats } = answer
  const state = stateOf(run)
  const shown =
    rows.length === 0 ? 'no rows' : `rows ${shownCount(firstRow + 1)} to ${shownCount(firstRow + rows.length)}`
  return (
    <Group gap="sm" my="xs" role="status">
      {state === undefined ? null : <StateBadge state={state} />}
      {queryId === undefined ? null : <QueryLink queryId={queryId} />}
      <Group gap="sm" fz="sm">
        <Explained by={EXPLANATIONS.shownRows}>
          {shown}
          {phase === 'rows' ? ', and more' : ''}
        </Explained>
        <Explained by={EXPLANATIONS.elapsed}>{shownDuration(stats.elapsedTimeMillis * 1e6)}</Explained>
        <Explained by={EXPLANATIONS.processedRows}>{countedAs(stats.processedRows, 'row')} read</Explained>
        <Explained by={EXPLANATIONS.processedBytes}>{shownSize(stats.processedBytes)}</Explained>
        <Explained by={EXPLANATIONS.splits}>
          {shownCount(stats.completedSplits)} of {countedAs(stats.totalSplits, 'split')}
        </Explained>
      </Group>
    </Group>
  )
}

/** The state of the statement; undefined where a failed request leaves it unknown. */
function stateOf({ phase, answer, problem }: StatementRun): string | undefined {
  if (phase === 'canceled') return 'CANCELED'
  if (answer?.error) return 'FAILED'
  return problem ? undefined : answer?.stats.state
}
