import { Button, Group, Progress, Text, TextInput } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import type { ActInfo, ActPreview } from '../../../src/protocol/acts/act-schemas.ts'
import { useAct, useActBeginning, useActPreview, useActStop, type ActFilter, type ActKind } from '../../api/acts.ts'
import { DataTable, type Column } from '../../parts/data-table.tsx'
import { Dialog } from '../../parts/dialog.tsx'
import { queryColumn, statementColumn } from '../../parts/listed-columns.tsx'
import { Problem } from '../../parts/problem.tsx'
import { QueryLink } from '../../parts/query-link.tsx'
import { countedAs, shownCount } from '../../parts/units.ts'
import { SearchedSince } from './searched-since.tsx'

/** The effect of each act on the queries. */
const EFFECTS: Readonly<Record<ActKind, string>> = {
  kill: 'The queries fail with ADMINISTRATIVELY_KILLED.',
  hold: 'The waiting queries do not start until they are released.',
  release: 'The held queries wait in their groups again.',
  rerun: 'The statements run again as the same users. Their results are dropped.',
  forget: 'Texts, users, plans and figures of the queries are removed for ever.',
}

/** Shows the queries that an act would change, asks for the reason, and then shows the progress of the act. */
export function ActDialog({
  act,
  label,
  filter,
  onClose,
}: {
  readonly act: ActKind
  readonly label: string
  readonly filter: ActFilter
  /** @param isBegun whether the act was begun */
  readonly onClose: (isBegun: boolean) => void
}) {
  const preview = useActPreview(act, filter)
  const beginning = useActBeginning(filter)
  const close = () => onClose(beginning.isSuccess)
  return (
    <Dialog title={`${label} queries`} onClose={close} size="xl">
      {beginning.data ? (
        <ActProgress begun={beginning.data} onClose={close} />
      ) : (
        <>
          <Text size="sm">{EFFECTS[act]}</Text>
          {preview.error ? <Problem error={preview.error} /> : null}
          {preview.isPending ? <p>The queries are being read.</p> : null}
          {preview.data ? <PreviewedQueries preview={preview.data} /> : null}
          {beginning.error ? <Problem error={beginning.error} /> : null}
          {preview.data && preview.data.matched > 0 ? (
            <ReasonForm
              label={`${label} ${shownCount(preview.data.matched)}`}
              isBusy={beginning.isPending}
              onReason={(reason) => beginning.mutate({ act, reason, token: preview.data.token })}
            />
          ) : null}
        </>
      )}
    </Dialog>
  )
}

const previewColumns: readonly Column<ActPreview['queries'][number]>[] = [
  queryColumn,
  { id: 'state', title: 'State', value: (query) => query.state },
  { id: 'user', title: 'User', value: (query) => query.user },
  statementColumn((query) => query.query),
]

/** The most queries that the dialog lists. */
const MOST_SHOWN = 20

function PreviewedQueries({
  preview: { matched, searchedSince, denied, states, queries },
}: {
  readonly preview: ActPreview
}) {
  const counts = Object.entries(states).filter(([, count]) => (count ?? 0) > 0)
  const shown = queries.slice(0, MOST_SHOWN)
  return (
    <>
      <Text my="xs" role="status">
        {countedAs(matched, 'query')}
        {counts.map(([state, count]) => `, ${shownCount(count ?? 0)} ${state}`)}
        {denied > 0
          ? `. ${shownCount(denied)} more ${denied === 1 ? 'is' : 'are'} left out, because you may not end them`
          : ''}
      </Text>
      {searchedSince === undefined ? null : <SearchedSince iso={searchedSince} />}
      <DataTable
        label="Queries of the act"
        columns={previewColumns}
        rows={shown}
        rowKey={(query) => query.queryId}
        empty="The act can do nothing with these queries now."
      />
      {matched > shown.length ? <Text size="sm">and {shownCount(matched - shown.length)} more</Text> : null}
    </>
  )
}

/** Focuses a field. The queries above it stay in view. */
function focusInPlace(field: HTMLInputElement | null): void {
  field?.focus({ preventScroll: true })
}

function ReasonForm({
  label,
  isBusy,
  onReason,
}: {
  readonly label: string
  readonly isBusy: boolean
  readonly onReason: (reason: string) => void
}) {
  const [reason, setReason] = useState('')
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        onReason(reason)
      }}
    >
      <TextInput
        label="Reason"
        description="The users of the queries see it, and the record keeps it"
        value={reason}
        maxLength={1000}
        required
        onChange={(event) => setReason(event.currentTarget.value)}
        ref={focusInPlace}
      />
      <Group justify="end" mt="md">
        <Button type="submit" color="red" loading={isBusy} disabled={reason.trim() === ''}>
          {label}
        </Button>
      </Group>
    </form>
  )
}

function ActProgress({ begun, onClose }: { readonly begun: ActInfo; readonly onClose: () => void }) {
  const client = useQueryClient()
  const { data, error } = useAct(begun)
  const stop = useActStop(begun)
  const { state, done, matched, outcomes, problems } = data
  useEffect(() => {
    if (state === 'ENDED') void client.invalidateQueries({ queryKey: ['queries'] })
  }, [client, state])
  return (
    <>
      <Text role="status">
        {state === 'ENDED' ? 'Done' : 'In progress'}: {shownCount(done)} of {countedAs(matched, 'query')}
        {Object.entries(outcomes).map(([outcome, count]) => `, ${shownCount(count ?? 0)} ${outcome}`)}
      </Text>
      <Progress value={matched === 0 ? 100 : (100 * done) / matched} aria-label="Progress of the act" my="xs" />
      {error ? <Problem error={error} /> : null}
      {stop.error ? <Problem error={stop.error} /> : null}
      <ul>
        {problems.map(({ queryId, why }) => (
          <li key={queryId}>
            <QueryLink queryId={queryId} />: {why}
          </li>
        ))}
      </ul>
      <Group justify="end" mt="md">
        {state === 'ENDED' ? null : (
          <Button color="red" loading={!stop.isIdle && !stop.error} onClick={() => stop.mutate()}>
            Stop
          </Button>
        )}
        <Button variant="default" onClick={onClose} autoFocus>
          Close
        </Button>
      </Group>
    </>
  )
}
