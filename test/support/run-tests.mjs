// Runs the tests as `vitest run` does, with the same arguments, and ends with the line `N passed, N failed`. Under CI=true a
// test file that failed runs once more, alone, after the rest. If it passes then, it is flaky: a line `FLAKY file: first error`
// names it, and the run passes with at most three such files.
import { relative } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { parseCLI, startVitest } from 'vitest/node'

const FLAKY_FILES_ALLOWED = 3
/** With more failed files than this, something is broken, and second attempts only take time. */
const SECOND_ATTEMPTS = 10

const { filter, options } = parseCLI(['vitest', 'run', ...process.argv.slice(2)])

/** Runs the tests that the filters name. The outcome has one entry for each file, by path. */
async function run(filters) {
  process.exitCode = 0
  const vitest = await startVitest('test', filters, options)
  const unhandled = vitest.state.getUnhandledErrors()
  const files = vitest.state.getTestModules().map((module) => outcomeOf(module, unhandled, vitest.config.root))
  const ok = process.exitCode === 0
  return {
    ok,
    files,
    unplaced: unhandled.filter((error) => !files.some(({ path }) => path === error.VITEST_TEST_PATH)),
  }
}

function outcomeOf(module, unhandled, root) {
  const path = module.moduleId
  const failedTests = [...module.children.allTests('failed')]
  const errors = [
    ...module.errors(),
    ...[...module.children.allSuites()].flatMap((suite) => suite.errors()),
    ...failedTests.flatMap((test) => test.result().errors),
    ...unhandled.filter((error) => error.VITEST_TEST_PATH === path),
  ]
  const failed = errors.length > 0 || !['passed', 'skipped'].includes(module.state())
  const firstError = stripVTControlCharacters(errors[0]?.message ?? 'the file did not end').split('\n')[0]
  const counts = {
    passed: [...module.children.allTests('passed')].length,
    // A file can fail without a failed test: when it cannot be loaded, for example.
    failed: failed ? Math.max(1, failedTests.length) : 0,
  }
  return { path, name: relative(root, path), failed, firstError, counts }
}

const first = await run(filter)
const failedFiles = first.files.filter(({ failed }) => failed)
/** The counts of the closing line, by path. */
const outcomes = new Map(first.files.map((file) => [file.path, file]))
const flaky = []

if (process.env.CI === 'true' && failedFiles.length <= SECOND_ATTEMPTS) {
  for (const file of failedFiles) {
    console.log(`\nSecond attempt: ${file.name}`)
    const second = await run([file.path])
    if (second.ok) flaky.push({ first: file, second: second.files.find(({ path }) => path === file.path) ?? file })
  }
}

console.log()
for (const { first: file } of flaky) console.log(`FLAKY ${file.name}: ${file.firstError}`)
if (flaky.length > FLAKY_FILES_ALLOWED) {
  console.log(`${flaky.length} files are flaky, ${FLAKY_FILES_ALLOWED} may be: they count as failed`)
} else {
  for (const { second } of flaky) outcomes.set(second.path, second)
}

const total = (kind) => [...outcomes.values()].reduce((sum, { counts }) => sum + counts[kind], 0)
// An error outside of all files, or none found, fails the run as well.
const elsewhere = first.unplaced.length > 0 || (!first.ok && failedFiles.length === 0)
const failures = total('failed') + (elsewhere ? Math.max(1, first.unplaced.length) : 0)
console.log(`${total('passed')} passed, ${failures} failed`)
process.exit(failures === 0 ? 0 : 1)
