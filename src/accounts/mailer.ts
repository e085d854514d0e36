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

/** Whether the mail server knows the recipient and takes no mail for it, now or later; all else may pass. */
export function isRecipientRefused(error: unknown): boolean {
  if (!(error instanceof Error && 'command' in error && 'responseCode' in error)) return false
  return error.command === 'RCPT TO' && Number(error.responseCode) >= 500
}
