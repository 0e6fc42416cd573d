import { access } from './access.ts'
import { audit } from './audit.ts'
import { clusters } from './clusters.ts'
import { cost } from './cost.ts'
import { toGrafana } from './grafana.ts'
import { log } from './log.ts'
import { overview } from './overview.ts'
import type { DashboardSpec } from './panel.ts'
import { queues } from './queues.ts'
import { ruleFile, ruleTestFile } from './rule-files.ts'
import { runtime } from './runtime.ts'
import { statements } from './statements.ts'
import { workers } from './workers.ts'

export const dashboards: readonly DashboardSpec[] = [
  overview,
  statements,
  queues,
  workers,
  clusters,
  log,
  runtime,
  audit,
  access,
  cost,
]

/** Text of every generated file, by its path below `dashboards/`. */
export function files(): ReadonlyMap<string, string> {
  return new Map([
    ...dashboards.map((spec): [string, string] => [
      `json/quipu-${spec.name}.json`,
      `${JSON.stringify(toGrafana(spec), undefined, 2)}\n`,
    ]),
    ['rules/quipu.yaml', ruleFile()],
    ['rules/quipu.test.yaml', ruleTestFile()],
  ])
}
