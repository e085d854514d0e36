/**
 * Whether an address is of a scheme that an application chose (RFC 8252, 7.1), and not of the web.
 */
export function hasOwnScheme({ protocol }: URL): boolean {
  return protocol !== 'https:' && protocol !== 'http:'
}

/**
 * Schemes of known applications that have no dot, as their documents and reports of their users
 * have them. Behind the scheme such an address names a part of the application by a name with a
 * dot, `cursor://anysphere.cursor-mcp/oauth/callback`, and has no query: other addresses of these
 * schemes open files, hosts or installers.
 */
const KNOWN_SCHEMES = new Set(['claude:', 'cursor:', 'vscode:', 'vscode-insiders:', 'windsurf:'])

/**
 * Whether a code may go to an address of this scheme. Schemes of the system have no dot
 * (`search-ms:`, `tel:`, `file:`); the schemes of applications are a domain name backwards (RFC
 * 8252, 7.1).
 */
export function isRedirectScheme(address: URL): boolean {
  const { protocol, host, search } = address
  if (!hasOwnScheme(address)) return true
  if (protocol.includes('.')) return true
  return KNOWN_SCHEMES.has(protocol) && host.includes('.') && search === ''
}

/**
 * Where a code goes, for the user who decides. The host of an application's own scheme is free text
 * of that application: `evil.app://bank.example/` goes to whatever program took the scheme
 * `evil.app`, so that the scheme is shown with it.
 */
export function redirectWords(address: URL): string {
  const { protocol, host } = address
  if (!hasOwnScheme(address)) return host
  return host === '' ? protocol : `${protocol}//${host}`
}
