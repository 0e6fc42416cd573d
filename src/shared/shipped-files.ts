import { fileURLToPath } from 'node:url'

/** Folder of what is shipped with the project beside its code: two folders up from here in `src/` and `dist/` alike. */
export const shippedFiles: string = fileURLToPath(new URL('../../etc', import.meta.url))
