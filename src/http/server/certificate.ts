import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Server } from 'node:net'
import { createSecureContext, Server as TlsServer } from 'node:tls'
import { ConfigError } from '../../config.ts'
import type { Log } from '../../log.ts'

/** How often the files are checked, milliseconds. */
const LOOK_EVERY_MS = 1_000

const DAY_MS = 86_400_000

/** How long before its end a certificate is reported, milliseconds. Renewals come earlier. */
const ENDS_SOON_MS = 14 * DAY_MS

export interface CertificateFiles {
  certFile: string
  keyFile: string
}

export interface Certificate {
  cert: string
  key: string
}

/**
 * Reads the certificate and its key.
 *
 * @throws ConfigError that names the variable whose file cannot be read or used
 */
export function readCertificate({ certFile, keyFile }: CertificateFiles): Certificate {
  const certificate = { cert: readText('TLS_CERT_FILE', certFile), key: readText('TLS_KEY_FILE', keyFile) }
  const problem = problemOf(certificate)
  if (problem !== undefined) throw new ConfigError(`${problem}: ${certFile}, ${keyFile}`)
  return certificate
}

/**
 * Checks whether the files were replaced, and serves new connections with the new certificate; open
 * connections stay. If the new files cannot be used, the log says so and the current certificate
 * stays. The log also says, once a day, that the certificate has expired or expires soon, because
 * clients that refuse it send no request that would show it.
 *
 * @returns a function that ends the checks
 */
export function followCertificate(server: Server, files: CertificateFiles, log: Log): () => void {
  const first = readCertificate(files)
  let seen = JSON.stringify(first)
  let refused = ''
  let warnedAt = Number.NEGATIVE_INFINITY
  const warn = ({ cert }: Certificate): void => {
    if (performance.now() - warnedAt < DAY_MS) return
    warnedAt = performance.now()
    const words = expiryWords(cert, Date.now())
    if (words !== undefined) log.warn({ ...files }, words)
  }
  warn(first)
  const look = (): void => {
    try {
      const certificate = readCertificate(files)
      const text = JSON.stringify(certificate)
      if (text !== seen) warnedAt = Number.NEGATIVE_INFINITY
      warn(certificate)
      if (text === seen) return
      if (server instanceof TlsServer) server.setSecureContext(certificate)
      seen = text
      log.info({ ...files }, 'certificate replaced')
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      // Two files cannot be replaced at the same moment, so a failure counts only if the next check
      // finds it again.
      if (reason === refused) return
      if (refused === '') refused = `${PENDING}${reason}`
      else if (refused === `${PENDING}${reason}`) {
        refused = reason
        log.warn({ ...files, reason }, 'failed to use the new certificate; the one in use stays')
      } else refused = `${PENDING}${reason}`
      return
    }
    refused = ''
  }
  const timer = setInterval(look, LOOK_EVERY_MS)
  timer.unref()
  return () => clearInterval(timer)
}

const PENDING = 'pending '

/**
 * What an operator must know of the time of a certificate; undefined if it is valid for long
 * enough.
 */
export function expiryWords(cert: string, now: number): string | undefined {
  const { validFrom, validTo } = new X509Certificate(cert)
  if (now > Date.parse(validTo))
    return `the certificate expired on ${dayOf(validTo)}: clients refuse to connect; replace the files`
  if (now < Date.parse(validFrom))
    return `the certificate is not valid before ${dayOf(validFrom)}: clients refuse to connect`
  if (now > Date.parse(validTo) - ENDS_SOON_MS)
    return `the certificate expires on ${dayOf(validTo)}: replace the files before that day`
  return undefined
}

const dayOf = (time: string): string => new Date(time).toISOString().slice(0, 10)

function readText(variable: string, file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (cause) {
    throw new ConfigError(`${variable} names a file that cannot be read: ${file}`, { cause })
  }
}

/** Why a certificate cannot be used, naming the variable; undefined if it can. */
function problemOf({ cert, key }: Certificate): string | undefined {
  if (!isUsable({ cert })) return 'TLS_CERT_FILE holds no certificate in PEM'
  if (!isUsable({ key })) return 'TLS_KEY_FILE holds no private key in PEM without a passphrase'
  if (!isUsable({ cert, key })) return 'TLS_KEY_FILE holds the key of another certificate than TLS_CERT_FILE'
  return undefined
}

function isUsable(parts: Partial<Certificate>): boolean {
  try {
    createSecureContext(parts)
    return true
  } catch {
    // The name of the file is more helpful than the message of OpenSSL.
    return false
  }
}
