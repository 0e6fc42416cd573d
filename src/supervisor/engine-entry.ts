/**
 * The program that the launcher starts as root. It becomes a user of its own for good, and only then loads the engine.
 * Arguments: the number of its user and group, its further groups, the launcher's process id, the engine's program and
 * that program's own argument.
 */
const [id, groups, launcher, program, argument] = process.argv.slice(2) as [string, string, string, string, string]
const number = Number(id)
process.setgroups!(JSON.parse(groups) as number[])
process.setgid!(number)
process.setuid!(number)
let back = true
try {
  process.setuid!(0)
} catch {
  back = false
}
const ids = [process.getuid!(), process.geteuid!(), process.getgid!(), process.getegid!()]
if (back || number === 0 || ids.some((one) => one !== number)) throw new Error(`This process is not user ${id}`)
// The next launcher kills all processes of this user. It cannot see an engine that is still root, so that engine exits
// by itself.
if (process.ppid !== Number(launcher)) process.exit(1)
process.argv.splice(2, 5, argument)
await import(program)
