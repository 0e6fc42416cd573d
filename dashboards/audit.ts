import { lines, red, type DashboardSpec } from './panel.ts'
import { panelQuery as q } from './promql.ts'
import { administratorsActs, oneUser, refusals, tablesMostRead } from './tables.ts'

export const audit: DashboardSpec = {
  name: 'audit',
  title: 'audit',
  question: 'Who did what?',
  textVariables: [{ name: 'user', label: 'User', value: 'admin' }],
  panels: [
    lines(
      'Refused logins',
      'A second, by method. Many at once: somebody guesses, or a secret expired.',
      'reqps',
      [{ expr: q.rate('authentications', ['method'], 'result="refused"'), legend: '{{method}}' }],
      { thresholds: [red(1)], width: 12 },
    ),
    lines(
      'Denied actions',
      'A second, by action: rules that bite.',
      'reqps',
      [{ expr: q.rate('accessDenied', ['action']), legend: '{{action}}' }],
      { width: 12 },
    ),
    lines(
      'Log-ins',
      'Credentials that were verified anew, a second, by method. Those that were verified lately are not counted.',
      'reqps',
      [{ expr: q.rate('logIns', ['method']), legend: '{{method}}' }],
      { width: 12 },
    ),
    lines(
      'Files that are not in force',
      '1: the file was changed, and what it says now cannot be taken.',
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
