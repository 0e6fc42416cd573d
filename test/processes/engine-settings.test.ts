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

/** The tests in test/execution/engine prove that an engine applies these options. */
it.each([
  ['--prepare-ms', 'prepareMs', 'prepareDeadlineMs'],
  ['--interrupt-ms', 'interruptMs', 'interruptToKillMs'],
  ['--engine-beat-ms', 'engineBeatMs', 'beatMs'],
  ['--engine-dead-ms', 'engineDeadMs', 'deadAfterMs'],
  ['--spare-engine-ms', 'spareEngineMs', 'spareAfterMs'],
] as const)('%s (%s) becomes the option %s of engines', (flag, _key, name) => {
  expect(settingsOf(flag, '12345')[name]).toBe(12_345)
  expect(settingsOf()[name]).not.toBe(12_345)
})

it('--engine-memory-percent (engineMemoryPercent) sets the memory of engines, --page-store-bytes their spill limit', () => {
  const [small, large] = [settingsOf('--engine-memory-percent', '40'), settingsOf('--engine-memory-percent', '80')]
  const most = 256 * 1024 * 1024
  expect(large.memoryLimitBytes).toBeGreaterThanOrEqual(most)
  expect(large.memoryLimitBytes === most || large.memoryLimitBytes > small.memoryLimitBytes).toBe(true)
  expect(settingsOf('--page-store-bytes', '5MB').maxSpillBytes).toBe(5 * 1024 * 1024)
})
