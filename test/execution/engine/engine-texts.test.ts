import { describe, expect, it } from 'vitest'
import { faultOf } from '../../../src/execution/engine/engine-texts.ts'

describe('`faultOf`', () => {
  it.each([
    ['Out of Memory Error: Allocation failure', 'memory'],
    ['Out of Memory Error: failed to pin block of size 256.0 KiB (119.0 MiB/119.2 MiB used)', 'memory'],
    [
      `Out of Memory Error: failed to offload data block of size 256.0 KiB (18.7 MiB/19.0 MiB used).\nThis limit was set by the 'max_temp_directory_size' setting.`,
      'spill',
    ],
    ['IO Error: Could not write file "/spill/1": No space left on device', 'disk'],
    ['INTERNAL Error: Attempted to access index 3 within vector of size 3', 'broken'],
    [
      'FATAL Error: Failed: database has been invalidated because of a previous fatal error. The database must be restarted',
      'broken before',
    ],
    ['Conversion Error: Could not convert string "Out of Memory Error" to INT32', undefined],
    ['Invalid Input Error: FATAL Error: has been invalidated because of a previous', undefined],
    ['IO Error: No files found that match the pattern "x.parquet"', undefined],
  ])('classifies the message %s as %s', (text, fault) => {
    expect(faultOf(text)).toBe(fault)
  })
})
