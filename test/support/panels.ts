import { dashboards } from '../../dashboards/files.ts'
import type { MetricPanel, TablePanel } from '../../dashboards/panel.ts'
import type { RunningPrometheus } from './prometheus.ts'
import { waitUntil } from './quipu-process.ts'

/** Waits until an expression of a panel with default variables has a value above 0. */
export function panelShows(
  prometheus: Pick<RunningPrometheus, 'query'>,
  dashboard: string,
  title: string,
  meanwhile: () => Promise<unknown> = async () => {},
): Promise<void> {
  const expressions = metricPanel(dashboard, title).targets.map(({ expr }) => withDefaults(expr, '1m'))
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

/** The values that a panel shows with default variables, by their legends. A rate is the mean of the last hour. */
export async function panelValues(
  prometheus: Pick<RunningPrometheus, 'query'>,
  dashboard: string,
  title: string,
): Promise<Readonly<Record<string, number>>> {
  const shown = metricPanel(dashboard, title).targets.map(async ({ expr, legend }) =>
    (await prometheus.query(withDefaults(expr, '1h'))).map(
      ({ labels, value }) =>
        [legend.replaceAll(/\{\{(\w+)\}\}/g, (_, name: string) => labels[name] ?? ''), value] as const,
    ),
  )
  return Object.fromEntries((await Promise.all(shown)).flat())
}

/** Like `panelValues`, in whole events of the last hour: values in events a second are multiplied by 3,600. */
export async function panelCounts(
  prometheus: Pick<RunningPrometheus, 'query'>,
  dashboard: string,
  title: string,
): Promise<Readonly<Record<string, number>>> {
  const { unit } = metricPanel(dashboard, title)
  const each = unit === 'reqps' || unit === 'cps' ? 3600 : 1
  const values = Object.entries(await panelValues(prometheus, dashboard, title))
  // Prometheus extrapolates an increase over the time between two scrapes.
  return Object.fromEntries(values.map(([legend, value]) => [legend, Math.round(value * each)]))
}

function metricPanel(dashboard: string, title: string): MetricPanel {
  const panel = dashboards.find((spec) => spec.name === dashboard)?.panels.find((one) => one.title === title)
  if (!panel || panel.kind === 'table') throw new Error(`${dashboard} has no panel of metrics '${title}'`)
  return panel
}

/** @param rateInterval the time over which Grafana would compute a rate */
function withDefaults(expr: string, rateInterval: string): string {
  return expr.replaceAll('$__rate_interval', rateInterval).replaceAll('$job', '.*').replaceAll('$instance', '.*')
}

/** The table with this title of a dashboard. */
export function tablePanel(dashboard: string, title: string): TablePanel {
  const panel = dashboards.find((spec) => spec.name === dashboard)?.panels.find((one) => one.title === title)
  if (panel?.kind !== 'table') throw new Error(`${dashboard} has no table '${title}'`)
  return panel
}

/**
 * The SQL of a table as Grafana sends it for the last hour.
 * @param variables the texts of the dashboard's variables
 */
export function panelSql(sql: string, variables: Readonly<Record<string, string>>): string {
  return Object.entries(variables).reduce(
    (text, [name, value]) => text.replaceAll(`\${${name}:sqlstring}`, `'${value.replaceAll("'", "''")}'`),
    sql.replaceAll(/\$__timeFilter\(([^)]*)\)/g, "$1 between now() - interval '1 hour' and now()"),
  )
}
