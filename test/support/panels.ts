import { dashboards } from '../../dashboards/files.ts'
import type { RunningPrometheus } from './prometheus.ts'
import { waitUntil } from './quipu-process.ts'

/** Waits until an expression of a panel with default variables has a value above 0. */
export function panelShows(
  prometheus: Pick<RunningPrometheus, 'query'>,
  dashboard: string,
  title: string,
  meanwhile: () => Promise<unknown> = async () => {},
): Promise<void> {
  const panel = dashboards.find((spec) => spec.name === dashboard)?.panels.find((one) => one.title === title)
  if (!panel || panel.kind === 'table') throw new Error(`${dashboard} has no panel of metrics '${title}'`)
  const expressions = panel.targets.map(({ expr }) =>
    expr.replaceAll('$__rate_interval', '1m').replaceAll('$job', '.*').replaceAll('$instance', '.*'),
  )
  return waitUntil(
    `${title} shows something`,
    async () => {
      await meanwhile()
      for (const expr of expressions)
        if ((await prometheus.query(expr)).some(({ value }) => Number.isFinite(value) && value > 0)) return true
      return false
    },
    120_000,
  )
}
