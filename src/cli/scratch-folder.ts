import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A folder of this process's own, for what does not fit into its memory. */
export function makeScratchFolder(): { readonly path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), 'quipu-'))
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) }
}
