// Writes docs/functions.md from the built function table: npm run docs:functions
import { writeFileSync } from 'node:fs'
import { functionsDocument } from '../../dist/sql/functions/document.js'

writeFileSync(new URL('../../docs/functions.md', import.meta.url), functionsDocument())
