import type { Transporter } from 'nodemailer'
import type SMTPTransport from 'nodemailer/lib/smtp-transport/index.js'
import { NamedSocket } from '../net/named-socket.ts'

/** Longest that a step with the mail server may take, milliseconds. */
const STEP_MS_MAX = 10_000

export interface Mail {
  to: string
  subject: string
  text: string
}

/**
 * Sends mail through the operator's server. It loads the mail library and connects when the first
 * mail is sent.
 */
export class Mailer {
  readonly #smtpUrl: string
  readonly #from: string
  #transport: Promise<Transporter> | undefined

  constructor({ smtpUrl, from }: { smtpUrl: string; from: string }) {
    this.#smtpUrl = smtpUrl
    this.#from = from
  }

  /** @throws Error if the server does not accept the mail */
  async send({ to, subject, text }: Mail): Promise<void> {
    this.#transport ??= openTransport(this.#smtpUrl)
    // The address is passed as an object, so that the library cannot read a list or a name into it.
    await (await this.#transport).sendMail({ from: this.#from, to: { name: '', address: to }, subject, text })
  }

  async close(): Promise<void> {
    const transport = await this.#transport
    transport?.close()
  }
}

/**
 * Loads the library with the first mail, because most nodes never send mail and it has 39 modules.
 */
async function openTransport(url: string): Promise<Transporter> {
  const { createTransport } = await import('nodemailer')
  const limits = { connectionTimeout: STEP_MS_MAX, greetingTimeout: STEP_MS_MAX, socketTimeout: STEP_MS_MAX }
  return createTransport({ url, ...limits, getSocket: connectToServer })
}

/**
 * Opens a socket with our own look-up. The library falls back to Node's look-up, which holds a
 * thread for as long as name servers are silent.
 */
function connectToServer(
  { host = 'localhost', port, secure }: SMTPTransport.Options,
  callback: (error: Error | null, options: object) => void,
): void {
  const socket = new NamedSocket()
  const fail = (error: Error): void => callback(Object.assign(error, { command: 'CONN' }), {})
  socket.setTimeout(STEP_MS_MAX, () => socket.destroy(new Error('no connection in time')))
  socket.once('error', fail)
  socket.connect(Number(port ?? (secure ? 465 : 587)), host, () => {
    socket.removeListener('error', fail)
    socket.setTimeout(0)
    callback(null, { connection: socket })
  })
}

/**
 * Why the mail server has not taken a mail: it refuses the recipient for good (5xx); it refuses the
 * mail, or the recipient for now; or it does not answer. Undefined for a failure that is not the
 * mail server's.
 */
export function mailFailureOf(error: unknown): 'recipient' | 'refused' | 'unreachable' | undefined {
  if (!(error instanceof Error && 'command' in error)) return undefined
  const status = 'responseCode' in error && error.responseCode !== undefined ? Number(error.responseCode) : undefined
  if (status === undefined) return 'unreachable'
  return error.command === 'RCPT TO' && status >= 500 ? 'recipient' : 'refused'
}
