import { macros } from '../functions/engine-setup.ts'

// DuckDB expands macros while it binds, arguments and all: one used twice in a body is bound twice, and macros stand
// on macros. So a short text can be a huge expression.

interface Macro {
  readonly parameters: readonly string[]
  readonly body: string
}

interface Cost {
  /** Expressions that the macro comes to, its arguments not counted. */
  readonly own: number
  /** How often each argument is bound. */
  readonly uses: readonly number[]
}

let definitions: ReadonlyMap<string, Macro> | undefined
const costs = new Map<string, Cost>()

function definitionOf(name: string): Macro | undefined {
  definitions ??= new Map(
    macros.flatMap((statement) => {
      const match = /MACRO (\w+)\(([^)]*)\) AS ([^]*)$/.exec(statement)
      if (match === null) return []
      const parameters = match[2]!.split(',').map((parameter) => parameter.trim().split(/\s*:=/)[0]!)
      return [[match[1]!, { parameters, body: match[3]! }] as const]
    }),
  )
  return definitions.get(name)
}

function costOf(name: string): Cost | undefined {
  const known = costs.get(name)
  if (known !== undefined) return known
  const macro = definitionOf(name)
  if (macro === undefined) return undefined
  // Against a macro that would call itself; there is none, DuckDB refuses it.
  costs.set(name, { own: 1, uses: macro.parameters.map(() => 1) })
  const cost = measure(macro.body, macro.parameters)
  costs.set(name, cost)
  return cost
}

const TOKEN = /'(?:[^']|'')*'|[A-Za-z_]\w*|\d+(?:\.\d+)?|[(),]|[^\sA-Za-z_\d(),']/y

/** What a text comes to once its macros are expanded: expressions of its own, and how often each name is used. */
export function measure(text: string, names: readonly string[]): Cost {
  const uses = names.map(() => 0)
  let own = 0
  const tokens: string[] = []
  TOKEN.lastIndex = 0
  for (let at = 0; at < text.length; at = TOKEN.lastIndex) {
    const match = TOKEN.exec(text)
    if (match === null) {
      TOKEN.lastIndex = at + 1
      continue
    }
    tokens.push(match[0])
  }
  /** The factor of everything from here to the closing parenthesis: arguments of the call around it. */
  let position = 0
  const visit = (factor: number, callee: Cost | undefined): void => {
    let argument = 0
    const current = (): number => (callee === undefined ? factor : factor * Math.max(callee.uses[argument] ?? 1, 0))
    while (position < tokens.length) {
      const token = tokens[position++]!
      if (token === ')') return
      if (token === ',') {
        argument++
        continue
      }
      if (token === '(') {
        visit(current(), undefined)
        continue
      }
      const index = names.indexOf(token)
      if (index >= 0) uses[index]! += current()
      else own += current()
      if (tokens[position] === '(' && /^[A-Za-z_]/.test(token)) {
        position++
        const macro = costOf(token)
        if (macro !== undefined) own += current() * macro.own
        visit(current(), macro)
      }
    }
  }
  visit(1, undefined)
  return { own, uses }
}
