import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize, relative } from 'node:path'
import { repository } from './repository.ts'

/** Something that a file of `src` declares and exports. */
export interface ExportedName {
  readonly name: string
  /** Below the repository. */
  readonly file: string
  /** A type may be exported for who reads a signature, a value for who imports it alone. */
  readonly isType: boolean
  /** Does the file itself use it? */
  readonly usedAtHome: boolean
  /** Does another file, of whatever kind, import it? */
  readonly imported: boolean
}

const DECLARATION =
  /^export (?:declare )?(?:abstract )?(?:async )?(const|let|function\*?|class|interface|type|enum) (\w+)/gm
const NAMED = /^(?:import|export)(?: type)? (?:\w+, )?\{([^}]*)\} from '([^']+)'/gm
const WHOLE = /^(?:import|export)(?: type)? \*(?: as \w+)? from '([^']+)'/gm
/** What is taken of it stands beside the call, or in the type: any word of the file may be meant. */
const AT_RUN_TIME = /\bimport\(\s*'([^']+)'\s*\)/g

/** All exports of `src`, read from the text as Prettier leaves it: TypeScript's own program has no API for it. */
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
