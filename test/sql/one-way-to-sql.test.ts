import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parseAst } from 'vitest/node'
import { createSqlFrontEnd } from '../../src/sql/create-front-end.ts'
import { functionFamilies } from '../../src/sql/functions/function-table.ts'
import { codeOfModule, codeOfSource, literal, name, sql, type Sql } from '../../src/duckdb/text/sql.ts'
import { template } from '../../src/duckdb/text/template.ts'

// A statement for an engine is put together in one way: pieces of `src/duckdb/text`, which becomes text once. What the types
// cannot hold is held here, on the syntax trees of what was built.

const root = new URL('../../', import.meta.url).pathname

interface Node {
  readonly type: string
  readonly [field: string]: unknown
}

function sources(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory()
      ? sources(join(folder, entry.name))
      : entry.name.endsWith('.ts')
        ? [join(folder, entry.name)]
        : [],
  )
}

const isNode = (value: unknown): value is Node => typeof value === 'object' && value !== null && 'type' in value

/** Every node with the one around it. */
function* nodesOf(value: unknown, around: Node | undefined): Generator<readonly [Node, Node | undefined]> {
  if (Array.isArray(value)) for (const each of value) yield* nodesOf(each, around)
  else if (isNode(value)) {
    yield [value, around]
    for (const child of Object.values(value)) yield* nodesOf(child, value)
  }
}

const paths = ['src/duckdb', 'src/sql'].flatMap((room) => sources(join(root, room)))

const files = paths.map((file) => {
  const path = relative(join(root, 'src'), file)
  const built = join(root, 'dist', path.replace(/\.ts$/, '.js'))
  const nodes = (): readonly (readonly [Node, Node | undefined])[] => [
    ...nodesOf(parseAst(readFileSync(built, 'utf8')) as unknown, undefined),
  ]
  return { path, text: readFileSync(file, 'utf8'), nodes }
})
type File = (typeof files)[number]

const inside = ({ path }: File, ...folders: readonly string[]): boolean =>
  folders.some((folder) => path.startsWith(`${folder}/`))

/** Files that use one of these names. */
function using(...identifiers: readonly string[]): string[] {
  const word = new RegExp(String.raw`\b(?:${identifiers.join('|')})`)
  return files.filter((file) => !inside(file, 'duckdb/text') && word.test(file.text)).map(({ path }) => path)
}

const textOf = (quasi: unknown): string => (quasi as { readonly value: { readonly cooked: string } }).value.cooked

/** Strings with something put into them that no tag looks at: `…${x}…`, 'a' + x. */
function puttingTogether({ nodes }: File): string[] {
  return nodes().flatMap(([node, around]) => {
    if (node.type === 'TemplateLiteral') {
      const tagged = around?.type === 'TaggedTemplateExpression'
      const pieces = (node['quasis'] as readonly unknown[]).map(textOf)
      return tagged || pieces.length === 1 ? [] : [pieces.join('${}')]
    }
    if (node.type !== 'BinaryExpression' || node['operator'] !== '+') return []
    return [node['left'], node['right']].flatMap((side) =>
      isNode(side) && side.type === 'Literal' && typeof side['value'] === 'string' ? [`${side['value']}$\{}`] : [],
    )
  })
}

/** What only DuckDB's SQL has, and no message of ours. */
const ENGINE_WORDS =
  /\b[qtu]_[a-z]\w*\(|\b(?:TRY_)?CAST\(|\blist_transform\(|\bstruct_extract\(|\blambda \$|SELECT \$|\bOVER \(|\bEND\b| AS \$|\bcoalesce\(/

describe('one way to SQL', () => {
  it('only the end of rendering makes text of it', () => {
    expect(using('toText')).toEqual(['sql/renderer/render.ts', 'sql/types/duckdb-representation.ts'])
  })

  it('code comes from the source alone', () => {
    expect(using('codeOfModule', 'codeOfSource')).toEqual([])
    expect(using('endOfModules')).toEqual(['sql/create-front-end.ts'])
    expect(using(String.raw`template\(`).filter((path) => !/^(?:sql\/functions|duckdb\/macros)\//.test(path))).toEqual(
      [],
    )
  })

  it('once there is a front end no text becomes code', () => {
    createSqlFrontEnd()
    expect(() => codeOfModule('x')).toThrow('while the program starts')
    expect(() => template('x')).toThrow('while the program starts')
    expect(() => codeOfSource(['x'] as unknown as TemplateStringsArray, 0, 0, 1)).toThrow(TypeError)
    expect(Object.keys(functionFamilies())).not.toEqual([])
  })

  it('a piece is no text, and a text no piece', () => {
    expect(() => `${literal('x') as unknown as string}`).toThrow(TypeError)
    expect(() => sql`SELECT ${'x' as unknown as Sql}`).toThrow(TypeError)
    expect(() => name('a\0b')).toThrow()
  })

  it('tags are used as tags', () => {
    const called = files.flatMap((file) =>
      inside(file, 'duckdb/text')
        ? []
        : file.nodes().flatMap(([node]) => {
            const callee = node.type === 'CallExpression' ? (node['callee'] as Node) : undefined
            const isFill =
              callee?.type === 'MemberExpression' &&
              (callee['property'] as Node)['name'] === 'fill' &&
              (callee['object'] as Node)['name'] === 'context'
            return callee?.['name'] === 'sql' || isFill ? [file.path] : []
          }),
    )
    expect(called).toEqual([])
  })

  it('no piece stands within quotes of the code', () => {
    const open = files.flatMap((file) =>
      file.nodes().flatMap(([node]) => {
        if (node.type !== 'TaggedTemplateExpression') return []
        // String.raw makes expressions, not SQL.
        if ((node['tag'] as Node).type !== 'Identifier') return []
        const written = ((node['quasi'] as Node)['quasis'] as readonly unknown[]).map(textOf)
        const isOpen = (text: string): boolean => /['"]/.test(text.replaceAll(/'[^']*'|"[^"]*"/g, ''))
        return written.filter(isOpen).map((text) => `${file.path}: ${text}`)
      }),
    )
    expect(open).toEqual([])
  })

  it('no SQL is put together as a string', () => {
    // Templates of the function table and macros are strings while the program starts, and cannot be made later.
    const own = files.filter(
      (file) => !inside(file, 'duckdb/text', 'duckdb/macros', 'sql/syntax', 'sql/functions/families'),
    )
    const found = own.flatMap((file) =>
      puttingTogether(file)
        .filter((text) => ENGINE_WORDS.test(text))
        .map((text) => `${file.path}: ${text}`),
    )
    expect(found).toEqual([
      // Macros: made once, of the source.
      'duckdb/engine-setup.ts: CREATE OR REPLACE MACRO ${} AS ${}',
    ])
  })

  it('what is parsed came from a client: what is shown is put together as a tree', () => {
    const parsers = ['parseStatement', 'parseWithParameters']
    const callers = files.flatMap((file) =>
      inside(file, 'sql/syntax')
        ? []
        : file.nodes().flatMap(([node]) => {
            const callee = node.type === 'CallExpression' ? (node['callee'] as Node)['name'] : undefined
            return parsers.includes(callee as string) ? [file.path] : []
          }),
    )
    // The text of a view, which a client wrote; what the client sent, and of what kind that is.
    expect(callers).toEqual(['sql/analyzer/resolve.ts', 'sql/create-front-end.ts', 'sql/statements/query-type.ts'])
  })

  it('types are not talked round', () => {
    const cast = /\bas (?:any|never)\b|\bas unknown as\b/
    expect(files.filter(({ text }) => cast.test(text)).map(({ path }) => path)).toEqual([
      // A binding of DuckDB's and a walk over syntax.
      'duckdb/scripts/register.ts',
      'sql/syntax/tree.ts',
    ])
  })

  it('holds TRY in no place without a vector of its own for what it holds: `tried`', () => {
    const bare = paths.flatMap((path) =>
      readFileSync(path, 'utf8')
        .split('\n')
        .filter((line) => /\bTRY\((?!least\()/.test(line) && !/^\s*(\*|\/\/|\/\*\*)/.test(line))
        .map((line) => `${relative(root, path)}: ${line.trim()}`),
    )
    expect(bare).toEqual([])
  })
})
