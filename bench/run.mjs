// npm run bench [-- NAME …]: the project's figures, each beside its probe; one program after the other.
import { spawnSync } from 'node:child_process'

const all = [
  'small-statements',
  'delegated-statements',
  'delegated-take-over',
  'large-results',
  'tpch',
  'restart',
  'startup',
  'event-log',
  'durability',
  'projection',
  'projection-lag',
  'growth',
  'engine',
  'worker',
  'sql-front-end',
  'functions',
  'telemetry',
  'alerts',
  'abuse',
  'log-in',
  'rules',
  'resource-groups',
]
const names = process.argv.slice(2).length > 0 ? process.argv.slice(2) : all
for (const name of names) {
  console.log(`\n== ${name}`)
  const { status } = spawnSync(process.execPath, [new URL(`${name}.mjs`, import.meta.url).pathname], {
    stdio: 'inherit',
  })
  if (status !== 0) process.exitCode = 1
}
