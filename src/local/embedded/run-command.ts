import { type SpawnOptions, spawn } from 'node:child_process'

/** How a command ended. `code` is null if it could not be started or did not end in time. */
export type Outcome = { code: number | null; output: string }

/**
 * Runs a command to its end and returns its output. Never throws, because "there is no such
 * command" is an answer too.
 */
export function runCommand(
  command: string,
  commandArgs: string[],
  { timeoutMs, ...options }: SpawnOptions & { timeoutMs: number },
): Promise<Outcome> {
  return new Promise((resolve) => {
    const child = spawn(command, commandArgs, {
      ...options,
      stdio: ['ignore', 'pipe', 'pipe'],
      // A Ctrl-C in a terminal goes to the whole process group. Only this process shall stop the
      // command.
      detached: true,
    })
    // The timeout option of spawn is not used, because its timer remains if the command does not
    // exist.
    const timer = setTimeout(() => child.kill('SIGKILL'), timeoutMs)
    let output = ''
    const keep = (text: string) => {
      output = (output + text).slice(-20_000)
    }
    child.stdout?.setEncoding('utf8').on('data', keep)
    child.stderr?.setEncoding('utf8').on('data', keep)
    const end = (outcome: Outcome) => {
      clearTimeout(timer)
      resolve(outcome)
    }
    child.once('error', (error) => end({ code: null, output: error.message }))
    child.once('close', (code) => end({ code, output }))
  })
}

/** The last lines of a text, for a message about a failure. */
export function lastLines(text: string, linesMax = 15): string {
  return text.trimEnd().split('\n').slice(-linesMax).join('\n')
}
