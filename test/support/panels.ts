import { dashboards } from '../../dashboards/files.ts'
import type { TablePanel } from '../../dashboards/panel.ts'
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
