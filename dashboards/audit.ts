import { lines, red, type DashboardSpec } from './panel.ts'
import { panelQuery as q } from './promql.ts'
import { administratorsActs, oneUser, refusals, tablesMostRead } from './tables.ts'

export const audit: DashboardSpec = {
  name: 'audit',
  title: 'audit',
  question: 'Which user did which action?',
  textVariables: [{ name: 'user', label: 'User', value: 'admin' }],
  panels: [
    lines(
      'Refused log-ins',
      'Refused log-ins a second, by method. Many at once: somebody guesses passwords, or a secret expired.',
      'reqps',
      [{ expr: q.rate('authentications', ['method'], 'result="refused"'), legend: '{{method}}' }],
      { thresholds: [red(1)], width: 12 },
    ),
    lines(
      'Denied actions',
      'Actions a second that access rules denied.',
      'reqps',
      [{ expr: q.rate('accessDenied', ['action']), legend: '{{action}}' }],
      { width: 12 },
    ),
    lines(
      'Log-ins',
      'Verified credentials a second, by method, without credentials that were verified recently.',
      'reqps',
      [{ expr: q.rate('logIns', ['method']), legend: '{{method}}' }],
      { width: 12 },
    ),
    lines(
      'Files that are not in force',
      '1: the file changed and could not be loaded. Its earlier content stays in force.',
      'short',
      [{ expr: q.max('filesBroken', ['instance', 'file']), legend: '{{instance}} {{file}}' }],
      { thresholds: [red(1)], width: 12 },
    ),
    refusals,
    administratorsActs,
    tablesMostRead,
    oneUser,
  ],
}
