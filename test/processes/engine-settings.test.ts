import { expect, it } from 'vitest'
import { engineSettings } from '../../src/processes/engine-settings.ts'
import { loadConfig } from '../../src/config/load-config.ts'

const use = {
  folder: '/a',
  allowedDirectories: [],
  sharers: 1,
  translateError: (text: string) => new Error(text),
  launcher: undefined,
}
const settingsOf = (...flags: string[]) => engineSettings(loadConfig(flags, {}), use)

/** That an engine does what these say is held by test/execution/engine. */
it.each([
  ['--prepare-ms', 'prepareMs', 'prepareDeadlineMs'],
  ['--interrupt-ms', 'interruptMs', 'interruptToKillMs'],
  ['--engine-beat-ms', 'engineBeatMs', 'beatMs'],
  ['--engine-dead-ms', 'engineDeadMs', 'deadAfterMs'],
  ['--spare-engine-ms', 'spareEngineMs', 'spareAfterMs'],
] as const)('%s (%s) is what engines have as %s', (flag, _key, name) => {
  expect(settingsOf(flag, '12345')[name]).toBe(12_345)
  expect(settingsOf()[name]).not.toBe(12_345)
})

it('--engine-memory-percent (engineMemoryPercent) is the part that engines share, --page-store-bytes what they may spill', () => {
  const [small, large] = [settingsOf('--engine-memory-percent', '40'), settingsOf('--engine-memory-percent', '80')]
  const most = 256 * 1024 * 1024
  expect(large.memoryLimitBytes).toBeGreaterThanOrEqual(most)
  expect(large.memoryLimitBytes === most || large.memoryLimitBytes > small.memoryLimitBytes).toBe(true)
  expect(settingsOf('--page-store-bytes', '5MB').maxSpillBytes).toBe(5 * 1024 * 1024)
})
