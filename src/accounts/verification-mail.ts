import type { Config } from '../config.ts'
import { signAddressProof } from './address-proof.ts'
import type { Mailer } from './mailer.ts'

/**
 * Mails an account the link that proves its address.
 *
 * @throws Error if the mail server does not accept it
 */
export async function mailVerification(
  { config, mailer, clock }: { config: Config; mailer: Mailer; clock: { now: () => number } },
  { id, email }: { id: string; email: string },
): Promise<void> {
  const token = await signAddressProof(config.secrets.jwt, { userId: id, email }, clock.now())
  await mailer.send({
    to: email,
    subject: 'Verify your email address',
    text: [
      `Somebody created an account with this address at ${config.http.baseUrl}.`,
      'If it was you, open this link within a day:',
      `${config.http.baseUrl}/verify?token=${token}`,
      'If it was not you, do nothing.',
    ].join('\n\n'),
  })
}
