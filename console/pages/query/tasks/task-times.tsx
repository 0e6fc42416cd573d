import type { TaskInfo } from '../../../../src/protocol/info/schemas/task.ts'
import { Explained } from '../../../parts/explained.tsx'
import { EXPLANATIONS } from '../../../parts/explanations.ts'
import { TimeBars, type TimeBar } from '../../../parts/time-bars.tsx'
import { shortId } from '../stage-list.ts'

const MOST = 50

/** When the tasks ran, at most fifty. @param now end of the bars of tasks that run, milliseconds since the epoch */
export function TaskTimes({ tasks, now }: { readonly tasks: readonly TaskInfo[]; readonly now: number }) {
  const bars = tasks.slice(0, MOST).map((task): TimeBar => {
    const from = Date.parse(task.stats.startTime ?? task.stats.createTime)
    const to = task.stats.endTime === undefined ? Math.max(from, now) : Date.parse(task.stats.endTime)
    return { name: shortId(task.taskId), from, to, ...(task.state === 'FAILED' && { kind: 'failed' as const }) }
  })
  return bars.length === 0 ? null : (
    <>
      <Explained by={EXPLANATIONS.taskTimes}>Times of the tasks</Explained>
      <TimeBars label="Times of the tasks" bars={bars} />
    </>
  )
}
