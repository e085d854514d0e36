import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { expiryWords, readCertificate } from '../../../src/http/server/certificate.ts'
import { makeCertificate } from '../../support/certificate.ts'

test('a certificate that cannot be used is refused with the name of the variable at fault', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'agw-certificate-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const [first, second] = await Promise.all([makeCertificate(folder, 'a'), makeCertificate(folder, 'b')])
  assert.match(readCertificate(first).cert, /BEGIN CERTIFICATE/)
  assert.throws(
    () => readCertificate({ ...first, keyFile: second.keyFile }),
    /^Error: TLS_KEY_FILE holds the key of another certificate than TLS_CERT_FILE: /,
  )
  assert.throws(
    () => readCertificate({ ...first, certFile: first.keyFile }),
    /^Error: TLS_CERT_FILE holds no certificate in PEM: /,
  )
  assert.throws(
    () => readCertificate({ ...first, keyFile: first.certFile }),
    /^Error: TLS_KEY_FILE holds no private key in PEM without a passphrase: /,
  )
  assert.throws(
    () => readCertificate({ ...first, keyFile: join(folder, 'none.pem') }),
    /^Error: TLS_KEY_FILE names a file that cannot be read: /,
  )
})

test('a certificate that has expired, or expires within 14 days, is reported with the day', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'agw-certificate-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const { cert } = readCertificate(await makeCertificate(folder, 'a'))
  const after = (days: number) => expiryWords(cert, Date.now() + days * 86_400_000)
  assert.equal(after(1), undefined)
  assert.match(after(17) ?? '', /^the certificate expires on \d{4}-\d\d-\d\d: /)
  assert.match(after(31) ?? '', /^the certificate expired on \d{4}-\d\d-\d\d: clients refuse to connect/)
  assert.match(after(-1) ?? '', /^the certificate is not valid before /)
})
