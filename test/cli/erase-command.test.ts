import { expect, it } from 'vitest'
import { eraseCommand } from '../../src/cli/erase-command.ts'

it.each<[string, readonly string[], string]>([
  ['two values', ['--value', 'eva.lund', '--value', 'olga.berg'], 'Give --value once'],
  ['two users', ['--user', 'eva', '--user=olga'], 'Give --user once'],
  ['a user and a value', ['--user', 'eva', '--value', 'eva.lund'], 'either --user or --value'],
  ['neither a user nor a value', [], 'either --user or --value'],
  ['one letter', ['--value', 'e'], 'at least 3 letters or digits'],
  ['an empty value', ['--value='], 'at least 3 letters or digits'],
  ['signs of a pattern', ['--value', '.*'], 'at least 3 letters or digits'],
  ['a value without a text', ['--value'], 'not accepted'],
  ['a preview with a value', ['--value', 'eva.lund', '--preview=true', '--yes'], '--preview takes no value'],
  ['a confirmation with a value', ['--value', 'eva.lund', '--yes=no'], '--yes takes no value'],
])('`quipu erase` refuses %s before it opens the log', async (_, argv, message) => {
  await expect(eraseCommand(argv)).rejects.toThrow(message)
})
