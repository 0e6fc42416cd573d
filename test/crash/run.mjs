// npm run crash -- [--seed N] [--runs M]: kills and stops real processes under real clients, seed by seed.
import { spawnSync } from 'node:child_process'
import { parseArgs } from 'node:util'

const { values } = parseArgs({
  options: { seed: { type: 'string', default: '1' }, runs: { type: 'string', default: '100' } },
})
const result = spawnSync(
  'npx',
  ['vitest', 'run', '--config', 'test/vitest.config.ts', 'test/crash/crash.e2e.test.ts'],
  {
    stdio: 'inherit',
    env: { ...process.env, QUIPU_CRASH_SEED: values.seed, QUIPU_CRASH_RUNS: values.runs },
  },
)
process.exit(result.status ?? 1)
