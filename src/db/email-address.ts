import { domainToASCII } from 'node:url'

/**
 * An address with its domain in ASCII (IDNA), the form that mail servers use and in which accounts
 * are stored. Browsers send an international domain in either form. A domain that cannot be
 * converted stays unchanged. The part before the `@` stays unchanged too, because the mailer does
 * not support RFC 6531.
 */
export function asciiEmail(address: string): string {
  const at = address.lastIndexOf('@')
  const domain = address.slice(at + 1)
  // An ASCII domain needs no conversion. The converter is for web addresses: it would decode `%`,
  // stop at a slash, and read numbers as IPv4 addresses.
  if (at < 0 || !/[^\0-\x7f]/.test(domain) || /[\0-\x7f]/.test(domain.replace(/[\w.-]/g, ''))) return address
  return address.slice(0, at + 1) + (domainToASCII(domain) || domain)
}

/**
 * The form in which addresses are compared: the domain in ASCII, and A to Z as a to z. All other
 * characters stay. All addresses of accounts are ASCII. For other letters (U+0130), lower case
 * differs between Postgres and JavaScript.
 */
export function comparableEmail(address: string): string {
  return asciiEmail(address).replace(/[A-Z]/g, (letter) => letter.toLowerCase())
}
