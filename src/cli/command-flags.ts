import { parseArgs, type ParseArgsConfig } from 'node:util'
import { ExitError } from '../shared/engine-error.ts'
import { exitCodes } from '../shared/exit-codes.ts'

type Options = NonNullable<ParseArgsConfig['options']>
/** A list if the option may be given several times. */
type FlagOf<D> = D extends { readonly multiple: true } ? readonly (string | boolean)[] : string | boolean

/** Splits the arguments into the command's own flags, and the settings with their values. */
export function splitFlags<const O extends Options>(
  argv: readonly string[],
  options: O,
): {
  readonly flags: { readonly [K in keyof O]?: FlagOf<O[K]> }
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
    flags: values as { readonly [K in keyof O]?: FlagOf<O[K]> },
    settings: argv.filter((_, index) => !own.has(index)),
  }
}

/** The files of a flag, one for each time it is given. @throws ExitError 64 when it has no value */
export function filesOf(
  flag: string,
  values: readonly (string | boolean)[] | undefined,
): readonly string[] | undefined {
  return values?.map((value) => {
    if (typeof value === 'string' && value !== '') return value
    throw new ExitError(exitCodes.configuration, `--${flag} needs a file name`)
  })
}

/**
 * The error for wrong arguments.
 * @param command name of the command, such as `quipu query`
 */
export function wrongFlags(error: unknown, command: string): ExitError {
  // For a wrong option, Node's message has more text than helps.
  const [message] = (error as Error).message.split(/\. (?=To )/)
  return new ExitError(exitCodes.configuration, `${message}; see ${command} --help`)
}
