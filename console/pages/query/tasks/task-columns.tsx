import type { TaskInfo } from '../../../../src/protocol/info/wire-schemas.ts'
import type { Column } from '../../../parts/data-table.tsx'
import { countColumn, durationColumn, sizeColumn, stateColumn } from '../../../parts/figure-columns.tsx'
import { shortId } from '../stage-list.ts'

/** The columns of the table of tasks. */
export const taskColumns: readonly Column<TaskInfo>[] = [
  {
    id: 'task',
    title: 'Task',
    explanation: 'Stage and number of the task',
    value: (task) => task.taskId,
    cell: (task) => <span className="id">{shortId(task.taskId)}</span>,
  },
  stateColumn({ id: 'state', title: 'State', of: (task) => task.state }),
  {
    id: 'node',
    title: 'Runs at',
    explanation: 'Address of the worker or coordinator that runs the task',
    value: (task) => nodeOf(task.self),
    cell: (task) => <span title={task.self}>{nodeOf(task.self)}</span>,
  },
  {
    id: 'splits',
    title: 'Splits',
    explanation: 'Completed splits, of all splits of the task',
    numeric: true,
    value: (task) => task.stats.totalDrivers,
    cell: (task) => `${task.stats.completedDrivers} of ${task.stats.totalDrivers}`,
  },
  durationColumn({ id: 'elapsed', title: 'Elapsed', of: (task) => task.stats.elapsedTime }),
  durationColumn({ id: 'cpu', title: 'CPU', of: (task) => task.stats.totalCpuTime }),
  durationColumn({
    id: 'blocked',
    title: 'Blocked',
    explanation: 'Time in which the task waited for input or room for output',
    of: (task) => task.stats.totalBlockedTime,
  }),
  countColumn({ id: 'rows-in', title: 'Rows in', of: (task) => task.stats.processedInputPositions }),
  countColumn({ id: 'rows-out', title: 'Rows out', of: (task) => task.stats.outputPositions }),
  sizeColumn({ id: 'bytes-out', title: 'Bytes out', of: (task) => task.stats.outputDataSize }),
  sizeColumn({
    id: 'memory',
    title: 'Memory',
    explanation: 'Memory that the task holds now; 0 once it has ended',
    of: (task) => task.stats.memoryReservation,
  }),
  { id: 'failure', title: 'Failure', value: (task) => task.failures[0]?.message },
]

/** Host and port of a task's address. */
function nodeOf(self: string): string {
  return URL.canParse(self) ? new URL(self).host : self
}
