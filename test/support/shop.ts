import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { fileURLToPath } from 'node:url'

/** The folder with the documents of own APIs that tests and the guide use. */
export const OWN_FOLDER = fileURLToPath(new URL('../own/', import.meta.url))

export const SHOP_KEY = 'shop-key-of-the-operator'

/** The number of the depot's last shelf, which no double holds. */
export const LAST_SHELF = '9223372036854775807'

/** A request as the shop saw it. */
export interface ShopRequest {
  method: string
  url: string
  headers: IncomingMessage['headers']
  body: string
  /** performance.now() when it arrived. */
  at: number
}

/**
 * The company's own API of `test/own/orders.yaml`, on loopback: a key in a header, pages, a POST
 * that creates, a documented error. Below `/depot` it is the API of `test/own/depot.yaml`.
 */
export interface Shop {
  url: string
  requests: ShopRequest[]
  /** Requests that create an order, by the customer that they name. */
  createdBy: (customer: string) => number
  /**
   * How the shop treats requests from now on: it answers, answers with a failure, does not answer,
   * or cuts the connection.
   */
  mode: 'serves' | 'fails' | 'hangs' | 'cuts'
  /** How many moves of the depot fail before a move succeeds. */
  failingMoves: number
  close: () => Promise<void>
}

export async function startShop(): Promise<Shop> {
  const sockets = new Set<Socket>()
  const orders = new Map<string, object>([['ord_1001', order('ord_1001', 'Ada')]])
  const shop: Shop = {
    url: '',
    requests: [],
    mode: 'serves',
    failingMoves: 0,
    createdBy: (customer) => {
      const creations = shop.requests.filter(({ method, url }) => method === 'POST' && url === '/orders')
      return creations.filter(({ body }) => JSON.parse(body).customer === customer).length
    },
    close: async () => {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request.setEncoding('utf8')) body += chunk
    const { method = '', url = '', headers } = request
    shop.requests.push({ method, url, headers, body, at: performance.now() })
    if (url.startsWith('/depot/shelves')) {
      response.writeHead(headers.accept?.includes('application/vnd.depot+json') ? 200 : 406)
      response.end(`{"last":${LAST_SHELF}}`)
      return
    }
    if (url.startsWith('/depot')) {
      const isFailing = url === '/depot/moves' && shop.failingMoves > 0
      if (isFailing) shop.failingMoves -= 1
      answer(response, isFailing ? [503, { detail: 'Later.' }] : [200, { request: shop.requests.length }])
      return
    }
    if (method === 'POST' || url.startsWith('/orders')) {
      if (shop.mode === 'hangs') return
      if (shop.mode === 'cuts') {
        request.socket.destroy()
        return
      }
      if (shop.mode === 'fails') {
        answer(response, [503, { detail: 'The shop is closed.' }])
        return
      }
    }
    answer(response, serve(orders, { method, url, headers, body }))
  })
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  server.listen(0, '127.0.0.1').unref()
  await once(server, 'listening')
  shop.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return shop
}

function order(id: string, customer: string): object {
  return { id, customer, total: 49.9, state: 'open', items: [{ sku: 'tea-1', count: 2 }] }
}

/** The shop's answer to a request: a status, and perhaps a body. */
type Said = [status: number, body?: object]

function answer(response: ServerResponse, [status, body]: Said): void {
  response.writeHead(status, { 'content-type': status < 400 ? 'application/json' : 'application/problem+json' })
  response.end(body && JSON.stringify(body))
}

function serve(orders: Map<string, object>, request: Omit<ShopRequest, 'at'>): Said {
  const { pathname, searchParams } = new URL(request.url, 'http://shop')
  if (request.headers['x-shop-key'] !== SHOP_KEY) return [401, { detail: 'Who are you?' }]
  if (pathname === '/status') return [200, { open: true }]
  if (pathname === '/orders' && request.method === 'GET') {
    const page = Number(searchParams.get('page') ?? 1)
    return [200, { orders: [...orders.values()].slice(0, 2), page, nextPage: page < 3 ? page + 1 : null }]
  }
  if (pathname === '/orders' && request.method === 'POST') {
    const { customer } = JSON.parse(request.body)
    if (customer === 'Nobody') return [409, { detail: 'Nobody has no account in this shop.' }]
    const id = `ord_${1002 + orders.size}`
    orders.set(id, order(id, customer))
    return [201, order(id, customer)]
  }
  const id = decodeURIComponent(pathname.slice('/orders/'.length))
  const found = orders.get(id)
  if (!found) return [404, { detail: `There is no order ${id}.` }]
  if (request.method !== 'DELETE') return [200, found]
  orders.delete(id)
  return [204]
}
