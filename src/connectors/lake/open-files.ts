import { fchmod, fsync, open, read, writeFile } from 'node:fs'
import { promisify } from 'node:util'

// Calls about a file by its number. The functions of `node:fs/promises` take up to 50 % more CPU for a small file: they
// make a handle for each.
export const openFile = promisify(open)
export const readInto = promisify(read)
export const writeWhole = promisify(writeFile)
export const syncFile = promisify(fsync)
export const setFileMode = promisify(fchmod)
