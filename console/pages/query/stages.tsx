import { Table, Title } from '@mantine/core'
import type { PipelineInfo, StageInfo, TaskInfo } from '../../../src/protocol/info/wire-schemas.ts'
import { DataTable, type Column } from '../../parts/data-table.tsx'
import { countColumn, durationColumn, sizeColumn, stateColumn } from '../../parts/figure-columns.tsx'
import { Count, Duration } from '../../parts/figure.tsx'
import { StateBadge } from '../../parts/state-badge.tsx'
import { nanosOf } from '../../parts/units.ts'

const taskColumns: readonly Column<TaskInfo>[] = [
  {
    id: 'task',
    title: 'Task',
    value: (task) => task.taskId,
    cell: (task) => <span className="id">{shortId(task.taskId)}</span>,
  },
  stateColumn({ id: 'state', title: 'State', of: (task) => task.state }),
  durationColumn({ id: 'elapsed', title: 'Elapsed', of: (task) => task.stats.elapsedTime }),
  durationColumn({ id: 'cpu', title: 'CPU', of: (task) => task.stats.totalCpuTime }),
  durationColumn({ id: 'blocked', title: 'Blocked', of: (task) => task.stats.totalBlockedTime }),
  countColumn({ id: 'rows-in', title: 'Rows in', of: (task) => task.stats.processedInputPositions }),
  countColumn({ id: 'rows-out', title: 'Rows out', of: (task) => task.stats.outputPositions }),
  sizeColumn({ id: 'bytes-out', title: 'Bytes out', of: (task) => task.stats.outputDataSize }),
  sizeColumn({ id: 'memory', title: 'Memory', of: (task) => task.stats.memoryReservation }),
]

/** The stages of a query as a flat list, from the stage that gives the result to those that read tables. */
export function Stages({ root }: { readonly root: StageInfo }) {
  return (
    <section aria-label="Stages">
      <Title order={2} size="h4" my="xs">
        Stages
      </Title>
      {flattened(root).map((stage) => (
        <Stage key={stage.stageId} stage={stage} />
      ))}
    </section>
  )
}

function flattened(stage: StageInfo): readonly StageInfo[] {
  return [stage, ...stage.subStages.flatMap(flattened)]
}

function Stage({ stage }: { readonly stage: StageInfo }) {
  return (
    <>
      <Title order={3} size="h5" mt="xs">
        Stage {shortId(stage.stageId)} <StateBadge state={stage.state} />
      </Title>
      <DataTable
        label={`Tasks of stage ${shortId(stage.stageId)}`}
        columns={taskColumns}
        rows={stage.tasks}
        rowKey={(task) => task.taskId}
        empty="No task yet."
      />
      {stage.tasks.map((task) =>
        task.stats.pipelines.map((pipeline, index) => (
          <Operators key={`${task.taskId}.${index}`} pipeline={pipeline} profiled={task.stats.profiled} />
        )),
      )}
    </>
  )
}

/** The operators of a pipeline. A `?` stands for a figure that the engine did not measure. */
function Operators({ pipeline, profiled }: { readonly pipeline: PipelineInfo; readonly profiled: boolean }) {
  if (pipeline.operatorSummaries.length === 0) return null
  return (
    <details>
      <summary>
        {pipeline.operatorSummaries.map((operator) => operator.operatorType).join(' → ')}
        {profiled ? '' : ' (not profiled)'}
      </summary>
      <Table.ScrollContainer minWidth={320}>
        <Table>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Operator</Table.Th>
              <Table.Th>Rows in</Table.Th>
              <Table.Th>Rows out</Table.Th>
              <Table.Th>Wall time</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {pipeline.operatorSummaries.map((operator) => (
              <Table.Tr key={operator.operatorId}>
                <Table.Td>{operator.operatorType}</Table.Td>
                <Table.Td>
                  {operator.unknown?.includes('inputPositions') ? '?' : <Count of={operator.inputPositions} />}
                </Table.Td>
                <Table.Td>
                  {operator.unknown?.includes('outputPositions') ? '?' : <Count of={operator.outputPositions} />}
                </Table.Td>
                <Table.Td>
                  {profiled || nanosOf(operator.getOutputWall) !== 0 ? <Duration of={operator.getOutputWall} /> : '?'}
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
    </details>
  )
}

/** An id without the query's id in front: `1.0`. */
function shortId(id: string): string {
  return id.split('.').slice(1).join('.')
}
