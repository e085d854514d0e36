import { createTransport, type Transporter } from 'nodemailer'

/** Longest that one step with the mail server may take, milliseconds. */
const STEP_MS_MAX = 10_000

export interface Mail {
  to: string
  subject: string
  text: string
}

/** Sends mail through the operator's server. Nothing connects before the first mail. */
export class Mailer {
  readonly #from: string
  readonly #transport: Transporter

  constructor({ smtpUrl, from }: { smtpUrl: string; from: string }) {
    this.#from = from
    this.#transport = createTransport({
      url: smtpUrl,
      connectionTimeout: STEP_MS_MAX,
      greetingTimeout: STEP_MS_MAX,
      socketTimeout: STEP_MS_MAX,
    })
  }

  /** @throws Error when the server does not accept the mail */
  async send({ to, subject, text }: Mail): Promise<void> {
    // As an object: nothing in an address is read as a list or a name.
    await this.#transport.sendMail({ from: this.#from, to: { name: '', address: to }, subject, text })
  }

  close(): void {
    this.#transport.close()
  }
}

/**
 * Why the mail server has not taken a mail: it takes none for the recipient, now or later; it refuses the mail; it does not
 * answer. Undefined for a failure that is not the mail server's.
 */
export function mailFailureOf(error: unknown): 'recipient' | 'refused' | 'unreachable' | undefined {
  if (!(error instanceof Error && 'command' in error)) return undefined
  const status = 'responseCode' in error && error.responseCode !== undefined ? Number(error.responseCode) : undefined
  if (status === undefined) return 'unreachable'
  return error.command === 'RCPT TO' && status >= 500 ? 'recipient' : 'refused'
}
