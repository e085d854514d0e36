import { isOfUser, operate } from './operator/commands.ts'

try {
  const { text, code } = await operate(process.argv.slice(2))
  console.log(text)
  process.exitCode = code
} catch (error) {
  console.error(isOfUser(error) ? error.message : error)
  process.exitCode = 1
}
