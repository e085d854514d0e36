import assert from 'node:assert/strict'
import { test } from 'node:test'
import { completeNames, parseHosts, parseSearchList } from '../../src/net/system-names.ts'

test('a hosts file gives the addresses of each of its names, whatever their case, and takes no comment for a name', () => {
  const hosts = parseHosts(
    '127.0.0.1\tlocalhost\n::1 localhost ip6-localhost # local\n\n10.0.0.5  Redis cache\r\n#10.0.0.6 off\n',
  )
  assert.deepEqual(
    [...hosts],
    [
      ['localhost', ['127.0.0.1', '::1']],
      ['ip6-localhost', ['::1']],
      ['redis', ['10.0.0.5']],
      ['cache', ['10.0.0.5']],
    ],
  )
})

test('short names are completed as the system does: in Kubernetes a service is found by its name alone', () => {
  const list = parseSearchList(
    'nameserver 10.0.0.10\nsearch a.svc.cluster.local svc.cluster.local\noptions edns0 ndots:5\n',
  )
  assert.deepEqual(list, { domains: ['a.svc.cluster.local', 'svc.cluster.local'], dots: 5 })
  assert.deepEqual(completeNames('redis', list), ['redis.a.svc.cluster.local', 'redis.svc.cluster.local', 'redis'])
  assert.deepEqual(completeNames('api.github.com.', list), ['api.github.com.'])
  const usual = parseSearchList('domain corp.example.\n')
  assert.deepEqual(completeNames('api.github.com', usual), ['api.github.com', 'api.github.com.corp.example'])
  assert.deepEqual(completeNames('redis', parseSearchList('')), ['redis'])
})
