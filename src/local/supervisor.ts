import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { childEnvironment, NODE_FLAGS, type ProcessKind } from '../config.ts'

/** A process to keep running. */
export interface ProcessPlan {
  kind: ProcessKind
  /** The prefix of its log lines: `web-1`. */
  label: string
  /** The file to run, relative to the project. */
  entry: string
  environment: Record<string, string>
}

const RESTART_MS_MIN = 500
const RESTART_MS_MAX = 15_000

/**
 * How long a process may take to become ready, for example on a slow disk, and to end after
 * SIGTERM. Milliseconds.
 */
const READY_MS_MAX = 60_000
const END_MS_MAX = 28_000

/** A process that ran for so long is not in a restart loop, milliseconds. */
const STEADY_MS = 60_000

/**
 * Keeps processes running: adds a label to their output, starts them again when they die, and ends
 * them together.
 */
export class Supervisor {
  readonly #print: (label: string, line: string) => void
  readonly #readyMsMax: number
  readonly #children = new Map<string, ChildProcess>()
  readonly #restarted = new WeakSet<ChildProcess>()
  /** Functions that start a dead process without waiting for the end of its pause, by label. */
  readonly #waiting = new Map<string, () => void>()
  #isEnding = false

  constructor(print: (label: string, line: string) => void, { readyMsMax = READY_MS_MAX } = {}) {
    this.#print = print
    this.#readyMsMax = readyMsMax
  }

  /**
   * Starts a process and waits until it reports that it is ready.
   *
   * @returns what it reported
   * @throws Error if it ends before that, or takes too long
   */
  async start(plan: ProcessPlan): Promise<unknown> {
    if (this.#isEnding) throw new Error(`${plan.label} is not started: all are ending`)
    const child = this.#spawn(plan)
    const ended = once(child, 'exit').then(([code, signal]) => {
      throw new Error(`${plan.label} ended before it was ready (${signal ?? `exit code ${code}`})`)
    })
    const ready = once(child, 'message', { signal: AbortSignal.timeout(this.#readyMsMax) }).catch(() => {
      throw new Error(`${plan.label} was not ready within ${this.#readyMsMax / 1_000} s`)
    })
    const [message] = await Promise.race([ready, ended])
    this.#keep(plan, child, RESTART_MS_MIN)
    return message
  }

  /** Ends all processes: SIGTERM first, then SIGKILL. */
  async end(): Promise<void> {
    this.#isEnding = true
    const children = [...this.#children.values()].filter(
      (child) => child.exitCode === null && child.signalCode === null,
    )
    const ends = children.map((child) => once(child, 'exit'))
    for (const child of children) child.kill('SIGTERM')
    const timer = setTimeout(() => this.kill(), END_MS_MAX)
    await Promise.all(ends)
    clearTimeout(timer)
  }

  /**
   * Ends every process in an orderly way and starts it again at once, including processes that wait
   * after a death, because their code has changed.
   */
  restart(): void {
    for (const child of this.#children.values()) {
      this.#restarted.add(child)
      child.kill('SIGTERM')
    }
    for (const startNow of [...this.#waiting.values()]) startNow()
  }

  /** Kills all processes at once. */
  kill(): void {
    this.#isEnding = true
    for (const child of this.#children.values()) child.kill('SIGKILL')
  }

  #spawn({ kind, label, entry, environment }: ProcessPlan): ChildProcess {
    const child = fork(new URL(`../../${entry}`, import.meta.url), {
      env: childEnvironment(kind, environment),
      execArgv: [...process.execArgv, ...NODE_FLAGS],
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      // A Ctrl-C in the terminal reaches only this process, which then ends the others in order.
      detached: true,
    })
    for (const stream of [child.stdout, child.stderr]) {
      if (stream) createInterface({ input: stream }).on('line', (line) => this.#print(label, line))
    }
    this.#children.set(label, child)
    return child
  }

  #keep(plan: ProcessPlan, child: ChildProcess, pauseMs: number): void {
    const startedAt = Date.now()
    const onEnd = (how: string): void => {
      if (this.#isEnding) return
      if (this.#restarted.has(child)) {
        this.#keep(plan, this.#spawn(plan), RESTART_MS_MIN)
        return
      }
      const pause = Date.now() - startedAt > STEADY_MS ? RESTART_MS_MIN : pauseMs
      this.#print(plan.label, `ended (${how}); starting again in ${pause} ms`)
      const startAgain = (nextPauseMs: number): void => {
        clearTimeout(timer)
        this.#waiting.delete(plan.label)
        if (!this.#isEnding) this.#keep(plan, this.#spawn(plan), nextPauseMs)
      }
      const timer = setTimeout(() => startAgain(Math.min(pause * 2, RESTART_MS_MAX)), pause)
      this.#waiting.set(plan.label, () => startAgain(RESTART_MS_MIN))
    }
    child.once('exit', (code, signal) => onEnd(signal ?? `exit code ${code}`))
    // The machine refuses a new process, for example because it has too many. No `exit` follows.
    child.on('error', (error) => {
      if (child.pid === undefined) onEnd(error.message)
    })
  }
}
