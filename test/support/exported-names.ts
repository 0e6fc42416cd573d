import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize, relative } from 'node:path'
import { repository } from './repository.ts'

/** A name that a file of `src` declares and exports. */
export interface ExportedName {
  readonly name: string
  /** The path in the repository. */
  readonly file: string
  /** A type may be exported because a signature uses it; a value only because a file imports it. */
  readonly isType: boolean
  /** Whether the file itself uses the name. */
  readonly usedAtHome: boolean
  /** Whether another file of any kind imports the name. */
  readonly imported: boolean
}

const DECLARATION =
  /^export (?:declare )?(?:abstract )?(?:async )?(const|let|function\*?|class|interface|type|enum) (\w+)/gm
const NAMED = /^(?:import|export)(?: type)? (?:\w+, )?\{([^}]*)\} from '([^']+)'/gm
const WHOLE = /^(?:import|export)(?: type)? \*(?: as \w+)? from '([^']+)'/gm
/** A dynamic import: the used names are anywhere in the file, so every word of the file counts as used. */
const AT_RUN_TIME = /\bimport\(\s*'([^']+)'\s*\)/g

/** All exports of `src`, read from the text as Prettier formats it, because TypeScript's program has no API for this. */
export function exportedNames(): readonly ExportedName[] {
  const files = ['src', 'test', 'bench', 'dashboards'].flatMap((folder) => sourcesBelow(join(repository, folder)))
  const texts = new Map(files.map((file) => [relative(repository, file), readFileSync(file, 'utf8')]))
  const imports = new Set<string>()
  const anyWord = new Map<string, string[]>()
  for (const [file, text] of texts) {
    const targetOf = (spec: string): string | undefined =>
      spec.startsWith('.')
        ? normalize(join(dirname(file), spec))
            .replace(/^dist\//, 'src/')
            .replace(/\.js$/, '.ts')
        : undefined
    for (const [, names, spec] of text.matchAll(NAMED)) {
      const target = targetOf(spec!)
      for (const one of names!.split(',')) {
        const name = one
          .trim()
          .replace(/^type /, '')
          .replace(/ as .*$/s, '')
        if (target && name !== '') imports.add(`${target} ${name}`)
      }
    }
    for (const [, spec] of [...text.matchAll(WHOLE), ...text.matchAll(AT_RUN_TIME)]) {
      const target = targetOf(spec!)
      if (target) anyWord.set(target, [...(anyWord.get(target) ?? []), text])
    }
  }
  const found: ExportedName[] = []
  for (const [file, text] of texts) {
    if (!file.startsWith('src/')) continue
    for (const [, kind, name] of text.matchAll(DECLARATION)) {
      const word = new RegExp(`\\b${name}\\b`, 'g')
      found.push({
        name: name!,
        file,
        isType: kind === 'type' || kind === 'interface',
        usedAtHome: [...text.matchAll(word)].length > 1,
        imported: imports.has(`${file} ${name}`) || (anyWord.get(file) ?? []).some((other) => other.search(word) >= 0),
      })
    }
  }
  return found
}

function sourcesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.m?[jt]s$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
}
