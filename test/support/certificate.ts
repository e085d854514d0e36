import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'

/** The files of a certificate and its key, in PEM. */
export interface CertificateFiles {
  certFile: string
  keyFile: string
}

/** Makes a self-signed certificate for localhost that is valid for 30 days. */
export async function makeCertificate(folder: string, name: string): Promise<CertificateFiles> {
  const certFile = join(folder, `${name}-cert.pem`)
  const keyFile = join(folder, `${name}-key.pem`)
  await promisify(execFile)('openssl', [
    ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '30'],
    ...['-keyout', keyFile, '-out', certFile],
    ...['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1'],
  ])
  return { certFile, keyFile }
}
