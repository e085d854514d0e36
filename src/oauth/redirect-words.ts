/**
 * Whether the scheme of an address is one application's own (RFC 8252, 7.1), and not http or https.
 */
export function hasOwnScheme({ protocol }: URL): boolean {
  return protocol !== 'https:' && protocol !== 'http:'
}

/**
 * Schemes without a dot that known applications use, according to their documentation and user
 * reports. After the scheme, such an address names a part of the application by a name with a dot,
 * for example `cursor://anysphere.cursor-mcp/oauth/callback`, and has no query. Other addresses of
 * these schemes open files, hosts or installers.
 */
const KNOWN_SCHEMES = new Set(['claude:', 'cursor:', 'vscode:', 'vscode-insiders:', 'windsurf:'])

/**
 * A reversed domain name begins with a top-level domain, which has letters alone or is an
 * internationalised name (RFC 3696, 2).
 */
const REVERSED_DOMAIN = /^(?:[a-z]{2,63}|xn--[a-z\d-]+)\./

/**
 * Whether a code may go to an address of this scheme. Schemes of operating systems have no dot
 * (`search-ms:`, `tel:`, `file:`), or begin with no domain (`x-apple.systempreferences:`). Schemes
 * of applications are reversed domain names (RFC 8252, 7.1). Nobody can check who owns the domain,
 * so the consent page shows the scheme.
 */
export function isRedirectScheme(address: URL): boolean {
  const { protocol, host, search } = address
  if (!hasOwnScheme(address)) return true
  if (REVERSED_DOMAIN.test(protocol)) return true
  return KNOWN_SCHEMES.has(protocol) && host.includes('.') && search === ''
}

/**
 * Where a code goes, in words for the user who decides. If the scheme is an application's own, the
 * host is free text: `evil.app://bank.example/` goes to the program that registered the scheme
 * `evil.app`. The words therefore show the scheme too.
 */
export function redirectWords(address: URL): string {
  const { protocol, host } = address
  if (!hasOwnScheme(address)) return host
  return host === '' ? protocol : `${protocol}//${host}`
}
