/**
 * Names of no coding: some programs write the charset, or that there is no coding, in the place of
 * a coding.
 */
const NO_CODINGS = new Set(['', 'identity', 'none', 'utf-8', 'utf8'])

/**
 * The codings of a body, in the order in which its sender applied them (RFC 9110, 8.4), in lower
 * case and without the names of no coding.
 */
export function contentCodings(header: string): string[] {
  const names = header.split(',').map((name) => name.trim().toLowerCase())
  return names.filter((name) => !NO_CODINGS.has(name))
}
