import {
  audits,
  impersonated,
  largeResults,
  leastRead,
  logIns,
  newReaders,
  readersOfColumns,
  readersOfTable,
  refusedObjects,
} from './access-tables.ts'
import { lines, red, type DashboardSpec } from './panel.ts'
import { panelQuery as q } from './promql.ts'
import { administratorsActs } from './tables.ts'

export const access: DashboardSpec = {
  name: 'access',
  title: 'access',
  question: 'Who read which tables, and who was refused?',
  textVariables: [{ name: 'table', label: 'Table', value: '%' }],
  panels: [
    lines(
      'Refused accesses a second',
      'Actions a second that access rules denied, by action.',
      'reqps',
      [{ expr: q.rate('accessDenied', ['action']), legend: '{{action}}' }],
      { width: 12 },
    ),
    lines(
      'Refused log-ins a second',
      'Refused log-ins a second, by method. Many at once: somebody guesses passwords, or a secret expired.',
      'reqps',
      [{ expr: q.rate('authentications', ['method'], 'result="refused"'), legend: '{{method}}' }],
      { thresholds: [red(1)], width: 12 },
    ),
    readersOfTable,
    readersOfColumns,
    newReaders,
    leastRead,
    refusedObjects,
    logIns,
    administratorsActs,
    impersonated,
    largeResults,
    audits,
  ],
}
