import type { Config } from '../config.ts'
import type { Db } from '../db/database.ts'
import {
  claimNotices,
  type ExpiringKey,
  findExpiringKeys,
  findNoticeAddress,
  type Notice,
  unclaimNotices,
} from '../db/notices.ts'
import type { Log } from '../log.ts'
import { keyPrefix } from './api-key.ts'
import { oneLine } from './foreign-text.ts'
import { type Mailer, mailFailureOf } from './mailer.ts'

export interface NoticeDeps {
  db: Db
  log: Pick<Log, 'warn'>
  config: Pick<Config, 'http'>
  /** If undefined, nothing is mailed. */
  mailer: Mailer | undefined
}

/**
 * How often a node looks for keys that expire soon, and retries mails that could not be sent,
 * milliseconds.
 */
const LOOK_EVERY_MS = 600_000

/** Most keys of one look. The next look finds the rest. */
const KEYS_MAX = 500

/**
 * Mails an account the notices that it has not received yet, unless it wants no mail or nobody has
 * proven its address. Only one of all processes sends each notice. If the mail server does not take
 * a mail now, the mail may be sent again later.
 *
 * @returns whether a mail was sent
 */
export async function sendNotices<T extends Notice>(
  { db, log, config, mailer }: NoticeDeps,
  { accountId, notices }: { accountId: string; notices: T[] },
  write: (notices: T[]) => { subject: string; lines: string[] },
): Promise<boolean> {
  const address = mailer && (await findNoticeAddress(db, accountId))
  if (!mailer || address === undefined) return false
  const claimed = await claimNotices(db, accountId, notices)
  if (claimed.length === 0) return false
  const { subject, lines } = write(claimed)
  const settings = `${config.http.baseUrl}/account/settings`
  const end = `You get one mail for each event. To stop these mails, switch notices off at ${settings}`
  try {
    await mailer.send({ to: address, subject, text: [...lines, end].join('\n\n') })
    return true
  } catch (error) {
    log.warn({ err: error, accountId }, 'failed to mail a notice')
    // If the server refuses the recipient, the notice stays claimed and nobody sends it again.
    if (mailFailureOf(error) !== 'recipient') await unclaimNotices(db, accountId, claimed)
    return false
  }
}

/**
 * Mails the owners of keys that expire within seven days and within one day. One mail names all
 * keys of an account.
 */
export async function sendExpiryNotices(deps: NoticeDeps, signal?: AbortSignal): Promise<void> {
  const byAccount = Map.groupBy(await findExpiringKeys(deps.db, KEYS_MAX), ({ accountId }) => accountId)
  for (const [accountId, notices] of byAccount) {
    if (signal?.aborted) return
    await sendNotices(deps, { accountId, notices }, (keys) => ({
      subject: keys.length === 1 ? 'An API key expires soon' : `${keys.length} API keys expire soon`,
      lines: [
        'The gateway refuses these keys from the given time on:',
        keys.map(expiryLine).join('\n'),
        `Rotate a key to continue without interruption: ${deps.config.http.baseUrl}/account/keys`,
      ],
    }))
  }
}

function expiryLine({ label, environment, lastFour, expiresAt }: ExpiringKey): string {
  const name = `${keyPrefix(environment)}…${lastFour}`
  return `${name}${label === null ? '' : ` (${oneLine(label)})`}: ${expiresAt.toISOString().slice(0, 16).replace('T', ' ')} UTC`
}

/**
 * Looks every ten minutes for keys that expire soon. Each node looks; the table of notices ensures
 * that only one node sends each mail.
 */
export class ExpiryWatch {
  readonly #deps: NoticeDeps
  readonly #closing = new AbortController()
  #timer: NodeJS.Timeout | undefined
  #current: Promise<void> | undefined

  constructor(deps: NoticeDeps) {
    this.#deps = deps
  }

  open(): void {
    if (!this.#deps.mailer) return
    this.#timer = setInterval(() => {
      this.#current ??= sendExpiryNotices(this.#deps, this.#closing.signal)
        .catch((error: unknown) => this.#deps.log.warn({ err: error }, 'failed to look for keys that expire'))
        .finally(() => {
          this.#current = undefined
        })
    }, LOOK_EVERY_MS)
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    this.#closing.abort()
    await this.#current
  }
}
