import { HOUR_MS, type ThrottleDeps, takeThrottles } from './throttle.ts'

/** Mails per hour that an account may have sent to its address. */
const MAILS_PER_HOUR = 3

/**
 * Attempts per hour. They also count if the mail server takes no mail, so that no account can make
 * a node try without end.
 */
const MAIL_ATTEMPTS_PER_HOUR = 20

/**
 * Takes a unit of the account's mails of this hour, then a unit of its attempts. A request that the
 * first limit refuses makes no attempt, so that it cannot use up the attempts and lead to a refusal
 * that speaks of the mail server.
 *
 * @returns a function that gives the mail back; the attempt still counts
 * @throws GatewayError RATE_LIMIT_EXCEEDED
 */
export async function takeMailUnits(deps: ThrottleDeps, subject: string): Promise<() => void> {
  const throttle = { subject, windowMs: HOUR_MS, code: 'RATE_LIMIT_EXCEEDED' } as const
  const [refund = () => undefined] = await takeThrottles(deps, [
    { ...throttle, name: 'mail', max: MAILS_PER_HOUR, hint: 'Use the link of a mail that has arrived, or wait' },
    {
      ...throttle,
      name: 'mail-attempt',
      max: MAIL_ATTEMPTS_PER_HOUR,
      hint: 'Wait: the gateway tries the mail server again later',
    },
  ])
  return refund
}
