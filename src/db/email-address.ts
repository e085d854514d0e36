import { domainToASCII } from 'node:url'

/**
 * An address with its domain in the ASCII form (IDNA), which mail servers and every account here
 * have: browsers send an international domain in either form. What cannot be converted stays as it
 * is. The part before the `@` stays too, because the mailer does not speak RFC 6531.
 */
export function asciiEmail(address: string): string {
  const at = address.lastIndexOf('@')
  const domain = address.slice(at + 1)
  // An ASCII domain has one form already. The converter is made for addresses of the web: it would
  // decode `%`, end at a slash and read numbers as IPv4.
  if (at < 0 || !/[^\0-\x7f]/.test(domain) || /[\0-\x7f]/.test(domain.replace(/[\w.-]/g, ''))) return address
  return address.slice(0, at + 1) + (domainToASCII(domain) || domain)
}

/**
 * How addresses are compared: A to Z are as a to z, and no other letter is like any of them. Every
 * account's address is ASCII; what Postgres and JavaScript make lower case of others (U+0130)
 * differs.
 */
export function comparableEmail(address: string): string {
  return asciiEmail(address).replace(/[A-Z]/g, (letter) => letter.toLowerCase())
}
