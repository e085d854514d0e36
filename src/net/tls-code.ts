/**
 * Whether a code of Node or OpenSSL says that TLS failed, mostly for a certificate, which no
 * waiting changes.
 */
export function isTlsCode(code: string): boolean {
  return /^(ERR_TLS|ERR_SSL|CERT_|UNABLE_TO_|DEPTH_ZERO|SELF_SIGNED)/.test(code)
}
