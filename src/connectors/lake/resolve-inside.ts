import { realpath } from 'node:fs/promises'
import { sep } from 'node:path'
import { EngineError } from '../../shared/engine-error.ts'
import { hasCode } from '../../shared/node-error.ts'

/**
 * A path in the location with its links followed.
 * @throws EngineError PERMISSION_DENIED when it leads out of the location, HIVE_BAD_DATA when it leads to itself
 */
export async function resolveInside(location: string, path: string): Promise<string> {
  const real = await realpath(path).catch((error: unknown) => {
    if (!hasCode(error, 'ELOOP')) throw error
    throw new EngineError('HIVE_BAD_DATA', 'A link in the catalog leads to itself', { cause: error, retry: 'later' })
  })
  if (real !== location && !real.startsWith(location.endsWith(sep) ? location : location + sep)) {
    throw new EngineError('PERMISSION_DENIED', 'A link in the catalog leads out of its location', { retry: 'later' })
  }
  return real
}
