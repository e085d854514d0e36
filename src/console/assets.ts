import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'

/** A file of the console's pages. */
export interface Asset {
  type: string
  body: string
}

const JS = 'text/javascript; charset=utf-8'
const CSS = 'text/css; charset=utf-8'

/** In this order: what comes later may rely on what came before. */
const STYLES = ['base.css', 'overview.css', 'tables.css']

/** The code that fills the page, on the server too. */
const SHARED = ['render.js', 'rows.js', 'html.js']

/** Every file that the overview page loads, by its name under `/assets/`; nothing comes from another host. */
export async function loadAssets(): Promise<Map<string, Asset>> {
  const own = (name: string) => readFile(new URL(`./browser/${name}`, import.meta.url), 'utf8')
  const uplot = (name: string) => readFile(createRequire(import.meta.url).resolve(`uplot/dist/${name}`), 'utf8')
  return new Map([
    ['overview.js', { type: JS, body: await own('overview.js') }],
    ['charts.js', { type: JS, body: await own('charts.js') }],
    ...(await Promise.all(
      SHARED.map(async (name): Promise<[string, Asset]> => [name, { type: JS, body: await own(name) }]),
    )),
    ['words.js', { type: JS, body: await readFile(new URL('../fleet/words.js', import.meta.url), 'utf8') }],
    ['overview.css', { type: CSS, body: (await Promise.all(STYLES.map(own))).join('') }],
    ['uplot.js', { type: JS, body: await uplot('uPlot.esm.js') }],
    ['uplot.css', { type: CSS, body: await uplot('uPlot.min.css') }],
  ])
}
