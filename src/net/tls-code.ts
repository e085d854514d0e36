/**
 * Whether a code of Node or OpenSSL says that TLS failed. The cause is mostly a certificate, so
 * waiting does not help.
 */
export function isTlsCode(code: string): boolean {
  return /^(ERR_TLS|ERR_SSL|CERT_|UNABLE_TO_|DEPTH_ZERO|SELF_SIGNED)/.test(code)
}
