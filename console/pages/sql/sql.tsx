import { Button, Group, Tabs, Title } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useEffect, useMemo, useRef, useState } from 'react'
import { csv, json, type RowsFormat } from '../../api/statement/formats.ts'
import { createMetadata } from '../../api/statement/metadata.ts'
import { StatementFailed } from '../../api/statement/read-rows.ts'
import { EMPTY_SESSION } from '../../api/statement/session.ts'
import { useViewer } from '../../api/viewer.ts'
import { Problem } from '../../parts/problem.tsx'
import { usePageTitle } from '../../shell/use-page-title.ts'
import { LazyEditor } from './editor/lazy-editor.tsx'
import { explainedPlan } from './explain/explain-plan.ts'
import { StatementPlan } from './explain/statement-plan.tsx'
import { OwnStatements } from './own-statements.tsx'
import { Result } from './run/result.tsx'
import { saveResult } from './run/save-result.ts'
import { useStatementRun } from './run/use-statement-run.ts'
import { SavedQueries } from './saved-queries.tsx'
import { SessionBar } from './session-bar.tsx'
import { useDraft } from './use-draft.ts'

/** Runs statements: an editor, the rows of the result, the plan, earlier statements. */
export function SqlPage() {
  usePageTitle('SQL')
  const client = useQueryClient()
  const metadata = useMemo(() => createMetadata(client), [client])
  const viewer = useViewer().data
  const user = viewer && (viewer.user ?? 'anonymous')
  const [text, setText] = useDraft()
  const [session, setSession] = useState(EMPTY_SESSION)
  const selected = useRef('')
  const [ran, setRan] = useState('')
  const { run, start, cancel, more } = useStatementRun(setSession)
  useEffect(() => {
    // The list of the user's statements has the new one.
    if (run.queryId !== undefined) void client.invalidateQueries({ queryKey: ['queries'] })
  }, [client, run.queryId, run.phase])
  const saving = useRef(new AbortController())
  const explaining = useMutation({
    mutationFn: (sql: string) => explainedPlan(sql, session, new AbortController().signal),
  })
  const downloading = useMutation({
    mutationFn(format: RowsFormat) {
      saving.current = new AbortController()
      return saveResult(ran, session, format, saving.current.signal)
    },
  })

  /** The selected part of the text, or all of it; without the semicolon at its end. */
  function chosen(): string {
    return withoutSemicolon(selected.current.trim() === '' ? text : selected.current)
  }
  function open(sql: string) {
    setText(sql)
    // The user chose the statement in a list below the editor.
    scrollTo(0, 0)
  }
  function runIt() {
    const sql = chosen()
    if (sql.trim() === '') return
    explaining.reset()
    if (downloading.isError) downloading.reset()
    setRan(sql)
    void start(sql, session)
  }

  const isRunning = ['running', 'rows', 'reading'].includes(run.phase)
  const mayDownload = run.columns !== undefined && run.answer?.updateType === undefined && ran !== ''
  const explainError = explaining.error instanceof StatementFailed ? explaining.error.error : undefined
  const [failed, at] = explainError
    ? [explaining.variables, explainError.errorLocation]
    : [ran, run.answer?.error?.errorLocation]
  // The server counts lines from the beginning of the statement that was sent.
  const errorLocation = failed === withoutSemicolon(text) ? at : undefined
  const isEmpty = withoutSemicolon(text) === ''
  return (
    <>
      <Title order={1} size="h2">
        SQL
      </Title>
      <SessionBar metadata={metadata} session={session} onSession={setSession} />
      <LazyEditor
        text={text}
        error={errorLocation}
        metadata={metadata}
        session={session}
        onChange={(changed, part) => {
          selected.current = part
          setText(changed)
        }}
        onRun={runIt}
      />
      <Group gap="xs" my="xs">
        <Button
          size="compact-md"
          title="Ctrl or Cmd with Enter; runs the selected part, if there is one"
          disabled={isEmpty}
          onClick={runIt}
        >
          Run
        </Button>
        <Button size="compact-md" variant="default" disabled={!isRunning} onClick={cancel}>
          Cancel
        </Button>
        <Button
          size="compact-md"
          variant="default"
          title="Shows the plan; the statement does not run"
          loading={explaining.isPending}
          disabled={isEmpty}
          onClick={() => explaining.mutate(chosen())}
        >
          Explain
        </Button>
        {[csv, json].map((format) => (
          <Button
            key={format.extension}
            size="compact-md"
            variant="default"
            title="Runs the statement again and saves all its rows"
            disabled={!mayDownload}
            loading={downloading.isPending && downloading.variables === format}
            onClick={() => downloading.mutate(format)}
          >
            {format.extension.toUpperCase()}
          </Button>
        ))}
        {downloading.isPending ? (
          <Button size="compact-md" variant="default" onClick={() => saving.current.abort()}>
            Stop saving
          </Button>
        ) : null}
      </Group>
      {downloading.error && downloading.error.name !== 'AbortError' ? <Problem error={downloading.error} /> : null}
      <StatementPlan plan={explaining.data} error={explaining.error} />
      <Result run={run} onMore={() => void more()} />
      <Tabs defaultValue="own" keepMounted={false} mt="md">
        <Tabs.List>
          <Tabs.Tab value="own">My statements</Tabs.Tab>
          <Tabs.Tab value="saved">Saved</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="own">{user === undefined ? null : <OwnStatements user={user} onOpen={open} />}</Tabs.Panel>
        <Tabs.Panel value="saved">
          <SavedQueries text={text} onOpen={open} />
        </Tabs.Panel>
      </Tabs>
    </>
  )
}

function withoutSemicolon(sql: string): string {
  return sql.replace(/[\s;]+$/, '')
}
