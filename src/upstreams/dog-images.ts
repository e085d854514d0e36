import { field, record, required } from '../catalog/fields.ts'
import { members, text } from '../catalog/json.ts'
import { lifetime } from '../catalog/lifetimes.ts'
import { param } from '../catalog/parameters.ts'
import { failed, notFound } from '../catalog/response-class.ts'
import { endpoint, upstream, words } from '../catalog/upstream-file.ts'
import { path } from '../catalog/upstream-request.ts'
import recordings from './recordings/dog-images.json' with { type: 'json' }

const picture = record({
  status: required.text('status', 'success'),
  image_url: required.text('message', 'On images.dog.ceo; now and then a picture is missing there'),
  breed: field.text(({ message }) => folderOf(message)[1], 'Breed in the picture, lower case'),
  sub_breed: field.text(
    ({ message }) => folderOf(message)[2],
    'Sub-breed in the picture, lower case; null if the breed has none',
  ),
})

export default upstream({
  displayName: 'Dog images',
  category: 'animals',
  description: 'Random dog pictures of any breed or of one breed, from the Dog CEO collection.',
  tags: ['dogs', 'animals', 'images', 'random', 'breeds'],
  keywords: words('puppy pet photo picture canine hound'),
  terms: {
    summary: 'Free. Pictures of the Stanford Dogs data set and of users; no attribution is required.',
    url: 'https://dog.ceo/dog-api/',
  },
  baseUrl: 'https://dog.ceo',
  // No limit is documented; this is a polite limit for a free service.
  caps: { concurrency: 4, rates: [{ max: 60, seconds: 60 }] },
  probe: { request: { path: path`/api/breeds/image/random` }, everySeconds: 300 },
  reservedParameters: words('format'),
  mayLack: words('sub_breed'),
  endpoints: {
    '/random': endpoint({
      description: 'A random picture of any breed.',
      data: picture,
      request: () => ({ path: path`/api/breeds/image/random` }),
      readFrom: pictureIn,
      example: recordings['/random'],
    }),
    '/breed': endpoint({
      description: 'A random picture of one breed, sub-breeds included.',
      parameters: {
        breed: param.text('Breed, or breed/sub-breed: hound, hound/afghan', {
          pattern: '^\\s*[A-Za-z]+(/[A-Za-z]+)?\\s*$',
          // The upstream knows breeds in lower case only.
          normalize: (_, breed) => breed.trim().toLowerCase(),
        }),
      },
      data: picture,
      cache: { seconds: 0, notFoundSeconds: lifetime.hour },
      request: ({ breed }) => {
        const [main = '', sub] = breed.split('/')
        if (sub === undefined) return { path: path`/api/breed/${main}/images/random` }
        return { path: path`/api/breed/${main}/${sub}/images/random` }
      },
      isNotFound: ({ body }) => text(members(body).message)?.startsWith('Breed not found') === true,
      readFrom: pictureIn,
      example: recordings['/breed'],
    }),
  },
})

/** `message` is the picture's address only if `status` says so: on errors it is a sentence. */
function pictureIn({ body }: { body: unknown }) {
  const { status, message, code } = members(body)
  if (status === 'error') return code === 404 ? notFound() : failed()
  return status === 'success' && text(message)?.startsWith('https://') ? body : undefined
}

/** The folder of the picture, named by its breed and sub-breed. */
function folderOf(address: unknown): (string | undefined)[] {
  return /\/breeds\/([^/-]+)(?:-([^/]+))?\//.exec(text(address) ?? '') ?? []
}
