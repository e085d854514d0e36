import type { BatchedLog } from '../log.ts'

/**
 * Lines of refused calls that an account gets in a second. Refused calls are free, so nothing else
 * bounds how much a caller writes into the log. Callers without an account share the lines of a
 * single account.
 */
const ACCOUNT_LINES_MAX = 10

/** The same for all accounts together, because accounts are free as well. */
const LINES_MAX = 200

const WINDOW_MS = 1_000

/**
 * Refused calls of one account within a window, by their codes, as far as they have no line of
 * their own.
 */
interface Refusals {
  lines: number
  unwritten: Record<string, number>
}

/**
 * The log lines of refused calls, which are sampled: the first of an account in each second have
 * lines, and one more line counts the rest by code. Metrics and usage count each of them all the
 * same.
 */
export class RefusalLines {
  readonly #log: Pick<BatchedLog, 'info'>
  #refusals = new Map<string | undefined, Refusals>()
  #lines = 0
  #timer: NodeJS.Timeout | undefined

  constructor(log: Pick<BatchedLog, 'info'>) {
    this.#log = log
  }

  /** `codes`: how many calls the line is about, by the codes of their errors. */
  write(
    line: object,
    { account, codes, message }: { account: string | undefined; codes: Record<string, number>; message: string },
  ): void {
    this.#timer ??= setTimeout(() => this.#endWindow(), WINDOW_MS).unref()
    const refusals = this.#refusals.get(account) ?? { lines: 0, unwritten: {} }
    this.#refusals.set(account, refusals)
    if (refusals.lines < ACCOUNT_LINES_MAX && this.#lines < LINES_MAX) {
      refusals.lines += 1
      this.#lines += 1
      this.#log.info(line, message)
    } else addCodes(refusals.unwritten, codes)
  }

  /** Writes what the last window still has to say. */
  close(): void {
    this.#endWindow()
  }

  /**
   * The accounts with surplus refusals get a line each, up to as many as all lines of a window; the
   * others share a line.
   */
  #endWindow(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const surplus = [...this.#refusals].filter(([, { unwritten }]) => Object.keys(unwritten).length > 0)
    this.#refusals = new Map()
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
    this.#log.info({ ...of, calls, codes }, 'further calls refused')
  }
}

function addCodes(sums: Record<string, number>, codes: Record<string, number>): void {
  for (const [code, count] of Object.entries(codes)) sums[code] = (sums[code] ?? 0) + count
}
