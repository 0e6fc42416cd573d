import { stringify } from 'yaml'
import { alertTests } from './alert-tests.ts'
import { alerts, runbookOf } from './alerts.ts'
import { recordingTests } from './recording-tests.ts'
import { recordingRules } from './recording-rules.ts'

const yaml = (value: unknown, head: string): string =>
  `${head}\n${stringify(value, { lineWidth: 0, aliasDuplicateObjects: false })}`

/** dashboards/rules/quipu.yaml: for Prometheus's `rule_files`. */
export function ruleFile(): string {
  return yaml(
    {
      groups: [
        { name: 'quipu-recording', interval: '1m', rules: recordingRules },
        {
          name: 'quipu-alerts',
          interval: '15s',
          rules: alerts.map(({ alert, expr, for: held, severity, summary, window }) => ({
            alert,
            expr,
            for: held,
            labels: { severity, ...(window === undefined ? {} : { window }) },
            annotations: { summary, runbook_url: runbookOf(alert) },
          })),
        },
      ],
    },
    '# Made by `npm run dashboards` from dashboards/recording-rules.ts and dashboards/alerts.ts.',
  )
}

/** dashboards/rules/quipu.test.yaml: for `promtool test rules`. */
export function ruleTestFile(): string {
  return yaml(
    { rule_files: ['quipu.yaml'], evaluation_interval: '1m', tests: [...alertTests, ...recordingTests] },
    '# Made by `npm run dashboards` from dashboards/alert-tests.ts; run by `promtool test rules`.',
  )
}
