import { existsSync } from 'node:fs'
import type { KeyObject } from 'node:crypto'
import type { Config } from '../config/load-config.ts'
import { anchorPaths } from '../processes/event-log/anchor-paths.ts'
import { publicKeyPath, readPublicKeys } from '../security/anchor-key.ts'
import { ExitError } from '../shared/engine-error.ts'
import { exitCodes } from '../shared/exit-codes.ts'

/** Whose signatures are believed: those of the file named, else those beside the anchor key of the settings. */
export function believedKeys(config: Config, named: string | boolean | undefined): readonly KeyObject[] | undefined {
  if (typeof named === 'boolean') throw new ExitError(exitCodes.configuration, '--public-key: which file?')
  if (named !== undefined) return readPublicKeys(named)
  const path = publicKeyPath(anchorPaths(config).key)
  return existsSync(path) ? readPublicKeys(path) : undefined
}
