import { LRUCache } from 'lru-cache'
import { oneLine } from '../accounts/foreign-text.ts'
import { type NoticeDeps, sendNotices } from '../accounts/notices.ts'
import { findCredentialName, type Notice } from '../db/notices.ts'
import type { LimitSubject } from './account-limits.ts'
import type { LimitState } from './limit-state.ts'
import { monthOf } from './month.ts'
import { callsOf } from './plans.ts'

/**
 * If a notice was sent, or if nobody wants it, how long until this process checks again,
 * milliseconds. The table of notices makes sure that no notice is sent twice.
 */
const SETTLED_MS = 86_400_000

/** When to retry a notice that could not be sent, milliseconds. */
const TRY_AGAIN_MS = 600_000

const KNOWN_MAX = 10_000

/** Longest name of a key in a mail. An admin of a team may have written the name. */
const NAME_CHARACTERS_MAX = 100

/**
 * Most notices that a node sends at once. While the mail server hangs, further notices are tried
 * with later calls.
 */
const AT_ONCE_MAX = 20

/** Whose month it is: the account's, or the month of a key or a connection with its own limit. */
interface Month {
  accountId: string
  credentialId: string | undefined
  used: number
  max: number
  /** Redis time, milliseconds. */
  now: number
}

/**
 * Mails an account when 80 % and 100 % of a month are used, once each for a plan and for a key or a
 * connection. Calls do not wait for the mail.
 */
export class MonthNotices {
  readonly #deps: NoticeDeps
  readonly #known = new LRUCache<string, true>({ max: KNOWN_MAX })
  #underWay = 0

  constructor(deps: NoticeDeps) {
    this.#deps = deps
  }

  /** Checks what a call has left of its months. */
  note({ accountId, allowance }: LimitSubject, { month, plan, credential: own, now }: LimitState): void {
    if (!month) return
    this.#look({ accountId, credentialId: undefined, used: month.used, max: plan.perMonth, now })
    if (own?.month) this.#look({ accountId, credentialId: allowance?.id, ...own.month, now })
  }

  #look(month: Month): void {
    if (month.used < 0.8 * month.max) return
    const kind = month.used < month.max ? 'month-80' : 'month-100'
    // A plan that was changed has notices of its own.
    const period = `${monthOf(month.now).name} ${month.credentialId ?? month.max}`
    const name = `${month.accountId} ${kind} ${period}`
    if (this.#known.has(name) || this.#underWay >= AT_ONCE_MAX) return
    this.#known.set(name, true, { ttl: TRY_AGAIN_MS })
    this.#underWay += 1
    this.#send(month, { kind, period })
      .then((isSent) => {
        if (isSent) this.#known.set(name, true, { ttl: SETTLED_MS })
      })
      .catch((error) => this.#deps.log.warn({ err: error, accountId: month.accountId }, 'failed to mail a notice'))
      .finally(() => {
        this.#underWay -= 1
      })
  }

  async #send({ accountId, credentialId, used, max, now }: Month, notice: Notice): Promise<boolean> {
    const { db, config } = this.#deps
    const name = credentialId === undefined ? undefined : await findCredentialName(db, credentialId)
    const whose =
      credentialId === undefined ? 'of your plan' : `that you allow ${oneLine(name ?? 'a key', NAME_CHARACTERS_MAX)}`
    const share = notice.kind === 'month-80' ? '80 %' : 'All'
    const resetsAt = new Date(monthOf(now).endsAt).toISOString().slice(0, 10)
    return await sendNotices(this.#deps, { accountId, notices: [notice] }, () => ({
      subject: `${share} of this month's calls ${notice.kind === 'month-80' ? 'are' : 'have been'} used`,
      lines: [
        `${used} of the ${callsOf(max)} a month ${whose} ${max === 1 ? 'is' : 'are'} used. The count starts again from zero on ${resetsAt} (UTC).`,
        notice.kind === 'month-100' ? 'The gateway refuses further live calls until then; test calls work.' : undefined,
        `Usage by day, API and key: ${config.http.baseUrl}/account`,
      ].filter((line) => line !== undefined),
    }))
  }
}
