import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Makes a folder that only this process uses, for data that does not fit into its memory. */
export function makeScratchFolder(): { readonly path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), 'quipu-'))
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) }
}
