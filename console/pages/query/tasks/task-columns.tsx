import type { TaskInfo } from '../../../../src/protocol/info/schemas/task.ts'
import type { Column } from '../../../parts/data-table.tsx'
import { countColumn, durationColumn, sizeColumn, stateColumn } from '../../../parts/figure-columns.tsx'
import { shortId } from '../stage-list.ts'
import { EXPLANATIONS } from '../../../parts/explanations.ts'

/** The columns of the table of tasks. */
export const taskColumns: readonly Column<TaskInfo>[] = [
  {
    id: 'task',
    title: 'Task',
    explanation: { text: 'Stage and number of the task' },
    value: (task) => task.taskId,
    cell: (task) => <span className="id">{shortId(task.taskId)}</span>,
  },
  stateColumn({ id: 'state', title: 'State', of: (task) => task.state }),
  {
    id: 'node',
    title: 'Runs at',
    explanation: { text: 'Address of the worker or coordinator that runs the task' },
    value: (task) => nodeOf(task.self),
    cell: (task) => <span title={task.self}>{nodeOf(task.self)}</span>,
  },
  {
    id: 'splits',
    title: 'Splits',
    explanation: EXPLANATIONS.taskSplits,
    numeric: true,
    value: (task) => task.stats.totalDrivers,
    cell: (task) => `${task.stats.completedDrivers} of ${task.stats.totalDrivers}`,
  },
  durationColumn({
    id: 'elapsed',
    title: 'Elapsed',
    explanation: EXPLANATIONS.taskElapsed,
    of: (task) => task.stats.elapsedTime,
  }),
  durationColumn({ id: 'cpu', title: 'CPU', explanation: EXPLANATIONS.taskCpu, of: (task) => task.stats.totalCpuTime }),
  durationColumn({
    id: 'blocked',
    title: 'Blocked',
    explanation: EXPLANATIONS.taskBlocked,
    of: (task) => task.stats.totalBlockedTime,
  }),
  countColumn({
    id: 'rows-in',
    title: 'Rows in',
    explanation: EXPLANATIONS.rowsIn,
    of: (task) => task.stats.processedInputPositions,
  }),
  countColumn({
    id: 'rows-out',
    title: 'Rows out',
    explanation: EXPLANATIONS.rowsOut,
    of: (task) => task.stats.outputPositions,
  }),
  sizeColumn({
    id: 'bytes-out',
    title: 'Bytes out',
    explanation: EXPLANATIONS.bytesOut,
    of: (task) => task.stats.outputDataSize,
  }),
  sizeColumn({
    id: 'memory',
    title: 'Memory',
    explanation: EXPLANATIONS.taskMemory,
    of: (task) => task.stats.memoryReservation,
  }),
  { id: 'failure', title: 'Failure', value: (task) => task.failures[0]?.message },
]

/** Host and port of a task's address. */
function nodeOf(self: string): string {
  return URL.canParse(self) ? new URL(self).host : self
}
