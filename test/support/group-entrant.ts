import type { Entrant } from '../../src/coordinator/dispatch/resource-groups.ts'

const NOTHING = { cpuMillis: 0, memoryBytes: 0, scannedBytes: 0 }

/** An entrant of a resource group. By default it is a query of ana that is never canceled and uses no resources. */
export function entrantOf(given: Partial<Entrant> & { readonly user?: string } = {}): Entrant {
  const { user = 'ana', ...rest } = given
  return {
    group: 'global',
    owner: { user, address: '127.0.0.1' },
    statement: {
      session: { user, groups: [], clientTags: [], resourceEstimates: {} },
      queryType: () => 'SELECT',
    },
    priority: 1,
    signal: new AbortController().signal,
    recovered: false,
    usage: () => NOTHING,
    moved() {},
    ...rest,
  }
}
