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
 * Whether a code may go to an address of this scheme. Schemes of operating systems have no dot
 * (`search-ms:`, `tel:`, `file:`). Schemes of applications are reversed domain names (RFC 8252,
 * 7.1).
 */
export function isRedirectScheme(address: URL): boolean {
  const { protocol, host, search } = address
  if (!hasOwnScheme(address)) return true
  if (protocol.includes('.')) return true
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
