import type { GroupCatalogs, RoutedStatement } from '../../../../src/coordinator/clusters/routing/route.ts'

/** A SELECT of the user `ana` over the catalog `lake`, 5 GB of it, with the given differences. */
export function routedStatement(changes: Partial<RoutedStatement> = {}): RoutedStatement {
  return {
    user: 'ana',
    groups: ['staff'],
    source: 'cli',
    clientTags: ['a', 'b'],
    queryType: 'SELECT',
    resourceGroup: 'all.adhoc',
    catalogs: ['lake'],
    written: [],
    unresolved: false,
    bytes: () => 5 * 1024 ** 3,
    ...changes,
  }
}

/**
 * Targets where this server has `lake` and `memory`. Each group has the given catalogs, and a cluster `<group>-1` with
 * the same catalogs. Catalogs of this server among them are mirrors.
 */
export function targetsOf(groups: Readonly<Record<string, readonly string[]>>): GroupCatalogs {
  const local = new Set(['lake', 'memory'])
  const catalogsOf = (names: readonly string[]) => ({
    own: new Set(names.filter((name) => !local.has(name))),
    mirrors: new Set(names.filter((name) => local.has(name))),
  })
  const all = Object.entries(groups)
  return {
    local,
    groups: new Map(all.map(([group, names]) => [group, catalogsOf(names)])),
    clusters: new Map(all.map(([group, names]) => [`${group}-1`, catalogsOf(names)])),
  }
}
