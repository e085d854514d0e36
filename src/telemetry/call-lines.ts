/**
 * Lines that an account gets in a second for calls with one code. Refused calls are free, so
 * nothing else limits how much a caller writes into the log. A line for each answered call would be
 * 34 GB a day at 1,000 calls a second. Callers without an account share the lines of one account.
 */
const ACCOUNT_LINES_MAX = 10

/** Lines of all accounts together in a second. They need a limit too, because accounts are free. */
const LINES_MAX = 200

const WINDOW_MS = 1_000

/** The part of a process's log that lines of calls use. */
interface LinesLog {
  info: (members: object, message: string) => void
}

interface LinedCall {
  account: string | undefined
  /** The code of the call's error, or its status. */
  code: string
  message: string
  /** If the line is about several calls: the number of calls by code. */
  codes?: Record<string, number>
}

/** The calls of one account within a window, by code: with a line, and without a line. */
interface Calls {
  lines: Record<string, number>
  unwritten: Record<string, number>
}

/**
 * Writes the log lines of calls, which are sampled. In each second the first calls of an account
 * with each code get a line, and one more line counts the others by code. Metrics, usage and the
 * log of calls in Postgres still include every call.
 */
export class CallLines {
  readonly #log: LinesLog
  #calls = new Map<string | undefined, Calls>()
  #lines = 0
  #timer: NodeJS.Timeout | undefined

  constructor(log: LinesLog) {
    this.#log = log
  }

  /** Makes the line of a call and writes it, or counts the call under its code. */
  write({ account, code, message, codes }: LinedCall, line: () => object): void {
    this.#timer ??= setTimeout(() => this.#endWindow(), WINDOW_MS).unref()
    const calls = this.#calls.get(account) ?? { lines: {}, unwritten: {} }
    this.#calls.set(account, calls)
    const { lines, unwritten } = calls
    const written = lines[code] ?? 0
    if (written < ACCOUNT_LINES_MAX && this.#lines < LINES_MAX) {
      lines[code] = written + 1
      this.#lines += 1
      this.#log.info(line(), message)
    } else if (codes) addCodes(unwritten, codes)
    else unwritten[code] = (unwritten[code] ?? 0) + 1
  }

  /** Writes the counts that the last window still has. */
  close(): void {
    this.#endWindow()
  }

  /**
   * Writes a line for each account with calls that got no line, up to the number of lines of a
   * window. The remaining accounts share a line.
   */
  #endWindow(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const surplus = [...this.#calls].filter(([, { unwritten }]) => Object.keys(unwritten).length > 0)
    this.#calls = new Map()
    this.#lines = 0
    for (const [account, { unwritten }] of surplus.slice(0, LINES_MAX)) this.#writeSurplus({ account }, unwritten)
    const others = surplus.slice(LINES_MAX)
    if (others.length === 0) return
    const codes: Record<string, number> = {}
    for (const [, { unwritten }] of others) addCodes(codes, unwritten)
    this.#writeSurplus({ accounts: others.length }, codes)
  }

  #writeSurplus(of: object, codes: Record<string, number>): void {
    const calls = Object.values(codes).reduce((sum, count) => sum + count, 0)
    this.#log.info({ ...of, calls, codes }, 'further calls')
  }
}

function addCodes(sums: Record<string, number>, codes: Record<string, number>): void {
  for (const [code, count] of Object.entries(codes)) sums[code] = (sums[code] ?? 0) + count
}
