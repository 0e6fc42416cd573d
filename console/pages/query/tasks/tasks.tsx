import { TextInput } from '@mantine/core'
import { useMemo, useState } from 'react'
import type { StageInfo } from '../../../../src/protocol/info/schemas/query.ts'
import type { TaskInfo } from '../../../../src/protocol/info/schemas/task.ts'
import { Section } from '../../../parts/section.tsx'
import { DataTable } from '../../../parts/data-table.tsx'
import { allStages } from '../stage-list.ts'
import { taskColumns } from './task-columns.tsx'
import { TaskTimes } from './task-times.tsx'

/** The tasks of all stages: where they ran, their splits, figures and times. */
export function Tasks({ root, now }: { readonly root: StageInfo | undefined; readonly now: number }) {
  const [search, setSearch] = useState('')
  const tasks = useMemo(() => allStages(root).flatMap((stage) => stage.tasks), [root])
  const found = useMemo(() => tasks.filter((task) => textOf(task).includes(search.toLowerCase())), [tasks, search])
  return (
    <Section title="Tasks">
      <TextInput
        label="Task, state or node"
        type="search"
        maw="20rem"
        my="xs"
        value={search}
        onChange={(event) => setSearch(event.currentTarget.value)}
      />
      <TaskTimes tasks={found} now={now} />
      <DataTable
        label="Tasks"
        columns={taskColumns}
        rows={found}
        rowKey={(task) => task.taskId}
        empty={tasks.length === 0 ? 'No tasks: the query has not started tasks here.' : 'No task fits the text.'}
      />
    </Section>
  )
}

function textOf({ taskId, state, self, failures }: TaskInfo): string {
  return [taskId, state, self, ...failures.map(({ message }) => message)].join(' ').toLowerCase()
}
