import { parseArgs, type ParseArgsConfig } from 'node:util'
import { ExitError } from '../shared/engine-error.ts'
import { exitCodes } from '../shared/exit-codes.ts'

/** The flags that a command has of its own, as they are written; all else are settings, with their values. */
export function splitFlags<const O extends NonNullable<ParseArgsConfig['options']>>(
  argv: readonly string[],
  options: O,
): {
  readonly flags: { readonly [K in keyof O]?: string | boolean }
  readonly settings: readonly string[]
} {
  const { tokens, values } = parseArgs({ args: [...argv], options, strict: false, tokens: true })
  const own = new Set<number>()
  for (const token of tokens)
    if (token.kind === 'option' && Object.hasOwn(options, token.name)) {
      own.add(token.index)
      if (token.value !== undefined && !token.inlineValue) own.add(token.index + 1)
    }
  return {
    flags: values as { readonly [K in keyof O]?: string | boolean },
    settings: argv.filter((_, index) => !own.has(index)),
  }
}

/**
 * What to tell of arguments that are wrong.
 * @param command `quipu query`
 */
export function wrongFlags(error: unknown, command: string): ExitError {
  // Of a wrong option Node tells more than helps.
  const [message] = (error as Error).message.split(/\. (?=To )/)
  return new ExitError(exitCodes.configuration, `${message}; see ${command} --help`)
}
