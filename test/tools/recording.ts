import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import type { Page } from 'playwright-core'
import { launchBrowser } from '../support/browser.ts'
import { startGateway } from '../support/gateway.ts'
import { signUpIn } from '../support/portal.ts'
import { ROOT } from './sources.ts'

/**
 * Draws the recording of README again: from the search in the catalog to an answer. `node
 * test/tools/recording.ts` writes `.github/images/portal.png`, an animated PNG, which needs no
 * encoder: its frames are screenshots as they come.
 */
const SIZE = { width: 880, height: 560 }

interface Frame {
  png: Buffer
  /** How long it is shown, milliseconds. */
  forMs: number
}

const frames: Frame[] = []

async function shoot(page: Page, forMs: number): Promise<void> {
  frames.push({ png: await page.screenshot(), forMs })
}

async function type(page: Page, name: string, text: string): Promise<void> {
  const field = page.getByLabel(name)
  for (let end = 1; end <= text.length; end += 2) {
    await field.fill(text.slice(0, end + 1))
    await shoot(page, 160)
  }
}

async function record(page: Page): Promise<void> {
  await signUpIn(page)
  await page.goto('/')
  await shoot(page, 2_000)
  await page.locator('#catalog').evaluate((element) => element.scrollIntoView())
  await shoot(page, 800)
  await type(page, 'Search', 'exchange rate')
  await shoot(page, 1_500)
  await page.getByRole('link', { name: 'Currency rates' }).click()
  await page.locator('#e1').evaluate((element) => element.scrollIntoView())
  await shoot(page, 2_000)
  await page.locator('#e1-to').fill('EUR')
  await shoot(page, 1_000)
  await page.locator('.endpoint').nth(1).getByRole('button', { name: 'Send' }).click()
  await page.locator('.endpoint').nth(1).locator('[data-details] figure').waitFor()
  await shoot(page, 3_000)
  await page.locator('.endpoint').nth(1).locator('[data-details]').scrollIntoViewIfNeeded()
  await shoot(page, 3_000)
  await page.locator('.endpoint').nth(1).getByRole('tab', { name: 'Python' }).click()
  await page.locator('#e1').evaluate((element) => element.scrollIntoView())
  await shoot(page, 3_000)
}

/** One chunk of a PNG (RFC 2083, 3.2). */
function chunk(name: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(name, 'latin1'), data])
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)]
  length.writeUInt32BE(data.length)
  sum.writeUInt32BE(crc32(body))
  return Buffer.concat([length, body, sum])
}

const words = (...values: number[]): Buffer =>
  Buffer.concat(
    values.map((value) => {
      const word = Buffer.alloc(4)
      word.writeUInt32BE(value)
      return word
    }),
  )

const halves = (...values: number[]): Buffer =>
  Buffer.concat(
    values.map((value) => {
      const half = Buffer.alloc(2)
      half.writeUInt16BE(value)
      return half
    }),
  )

const SIGNATURE_LENGTH = 8

function chunksOf(png: Buffer, wanted: string): Buffer[] {
  const found: Buffer[] = []
  for (let at = SIGNATURE_LENGTH; at < png.length; ) {
    const length = png.readUInt32BE(at)
    if (png.toString('latin1', at + 4, at + 8) === wanted) found.push(png.subarray(at + 8, at + 8 + length))
    at += length + 12
  }
  return found
}

/** The frames as one animated PNG, which begins anew at its end (APNG 1.0). */
function animate(all: Frame[]): Buffer {
  const [first] = all
  if (!first) throw new Error('a recording has frames')
  let sequence = 0
  const { width, height } = SIZE
  const parts = all.flatMap(({ png, forMs }, index) => {
    const shown = Buffer.concat([words(width, height, 0, 0), halves(forMs, 1_000), Buffer.from([0, 0])])
    const control = chunk('fcTL', Buffer.concat([words(sequence++), shown]))
    const data = Buffer.concat(chunksOf(png, 'IDAT'))
    return [control, index === 0 ? chunk('IDAT', data) : chunk('fdAT', Buffer.concat([words(sequence++), data]))]
  })
  return Buffer.concat([
    first.png.subarray(0, SIGNATURE_LENGTH),
    chunk('IHDR', chunksOf(first.png, 'IHDR')[0] ?? Buffer.alloc(0)),
    chunk('acTL', words(all.length, 0)),
    ...parts,
    chunk('IEND', Buffer.alloc(0)),
  ])
}

const gateway = await startGateway({})
const browser = await launchBrowser()
try {
  if (!browser) throw new Error('there is no Chromium, and it may not be installed here')
  const context = await browser.newContext({ baseURL: gateway.url, viewport: SIZE, colorScheme: 'light' })
  await record(await context.newPage())
  const picture = animate(frames)
  writeFileSync(join(ROOT, '.github/images/portal.png'), picture)
  const seconds = frames.reduce((sum, { forMs }) => sum + forMs, 0) / 1_000
  console.log(`${frames.length} frames, ${seconds} s, ${Math.round(picture.length / 1_000)} kB`)
} finally {
  await browser?.close()
  await gateway.stop()
}
