import { HOUR_MS, type ThrottleDeps, takeThrottles } from './throttle.ts'

/** Mails that an account may have sent to its address in an hour. */
const MAILS_PER_HOUR = 3

/**
 * Attempts count too when the mail server takes no mail: no account makes a node try it without
 * end.
 */
const MAIL_ATTEMPTS_PER_HOUR = 20

/**
 * Takes one of the hour's mails. Only what is tried counts as an attempt: a refusal for the mails
 * that came must not become an error that speaks of the mail server.
 *
 * @returns gives the mail back; the attempt stays
 * @throws GatewayError RATE_LIMIT_EXCEEDED
 */
export async function takeMail(deps: ThrottleDeps, subject: string): Promise<() => void> {
  const throttle = { subject, windowMs: HOUR_MS, code: 'RATE_LIMIT_EXCEEDED' } as const
  const [refund = () => undefined] = await takeThrottles(deps, [
    { ...throttle, name: 'mail', max: MAILS_PER_HOUR, hint: 'Look for the mails that arrived, or wait' },
    { ...throttle, name: 'mail-attempt', max: MAIL_ATTEMPTS_PER_HOUR, hint: 'Wait: the mail server is tried later' },
  ])
  return refund
}
