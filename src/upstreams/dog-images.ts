import Type from 'typebox'
import { field, record, required } from '../catalog/fields.ts'
import { members, text } from '../catalog/json.ts'
import { lifetime } from '../catalog/lifetimes.ts'
import { failed, invalid, notFound } from '../catalog/response-class.ts'
import { TEXT_LENGTH_MAX } from '../catalog/shared-parameters.ts'
import { endpoint, path, type Upstream } from '../catalog/upstream.ts'

const picture = record({
  status: required.text('status', 'success'),
  image_url: required.text('message', 'On images.dog.ceo; now and then a picture is missing there'),
  breed: field.text(({ message }) => folderOf(message)[1], 'Breed in the picture, lower case'),
  sub_breed: field.text(
    ({ message }) => folderOf(message)[2],
    'Sub-breed in the picture, lower case; null where the breed has none',
  ),
})

const dogImages: Upstream = {
  displayName: 'Dog images',
  category: 'animals',
  description: 'Random dog pictures of any breed or of one, from the Dog CEO collection.',
  tags: ['dogs', 'animals', 'images', 'random', 'breeds'],
  keywords: ['puppy', 'pet', 'photo', 'picture', 'canine', 'hound'],
  tierRequired: 'developer',
  terms: {
    summary: 'Free. Pictures of the Stanford Dogs data set and of users; no attribution is asked for.',
    url: 'https://dog.ceo/dog-api/',
  },
  baseUrl: 'https://dog.ceo',
  // No limit is documented; this is a polite limit for a free service.
  caps: { concurrency: 4, rates: [{ max: 60, seconds: 60 }] },
  probe: { request: { path: path`/api/breeds/image/random` }, everySeconds: 300 },
  reservedParameters: ['format'],
  mayLack: ['sub_breed'],
  endpoints: {
    '/random': endpoint({
      description: 'A random picture of any breed.',
      parameters: Type.Object({}),
      data: picture.schema,
      request: () => ({ path: path`/api/breeds/image/random` }),
      map: ({ body }) => readPicture(body),
      example: recordedRandom(),
    }),
    '/breed': endpoint({
      description: 'A random picture of one breed, sub-breeds included.',
      parameters: Type.Object({
        breed: Type.String({
          minLength: 1,
          maxLength: TEXT_LENGTH_MAX,
          pattern: '^\\s*[A-Za-z]+(/[A-Za-z]+)?\\s*$',
          description: 'Breed, or breed/sub-breed: hound, hound/afghan',
        }),
      }),
      data: picture.schema,
      cache: { seconds: 0, notFoundSeconds: lifetime.hour },
      // The upstream knows breeds in lower case only.
      complete: ({ breed }) => ({ breed: breed.trim().toLowerCase() }),
      request: ({ breed }) => {
        const [main = '', sub] = breed.split('/')
        if (sub === undefined) return { path: path`/api/breed/${main}/images/random` }
        return { path: path`/api/breed/${main}/${sub}/images/random` }
      },
      isNotFound: ({ body }) => text(members(body).message)?.startsWith('Breed not found') === true,
      map: ({ body }) => readPicture(body),
      example: recordedBreed(),
    }),
  },
}

export default dogImages

/** `message` is the picture's address only if `status` says so: on errors it is a sentence. */
function readPicture(body: unknown) {
  const { status, message, code } = members(body)
  if (status === 'error') return code === 404 ? notFound() : failed()
  if (status !== 'success' || !text(message)?.startsWith('https://')) return invalid()
  return picture.read(body) ?? invalid()
}

/** The folder of the picture, named by its breed and sub-breed. */
function folderOf(address: unknown): (string | undefined)[] {
  return /\/breeds\/([^/-]+)(?:-([^/]+))?\//.exec(text(address) ?? '') ?? []
}

function recordedRandom() {
  return {
    parameters: {},
    // biome-ignore format: as recorded
    response: { message: 'https://images.dog.ceo/breeds/greyhound-italian/n02091032_8150.jpg', status: 'success' },
    // biome-ignore format: as recorded
    data: { status: 'success', image_url: 'https://images.dog.ceo/breeds/greyhound-italian/n02091032_8150.jpg', breed: 'greyhound', sub_breed: 'italian' },
  }
}

function recordedBreed() {
  return {
    parameters: { breed: 'hound' },
    // biome-ignore format: as recorded
    response: { message: 'https://images.dog.ceo/breeds/hound-ibizan/n02091244_5638.jpg', status: 'success' },
    // biome-ignore format: as recorded
    data: { status: 'success', image_url: 'https://images.dog.ceo/breeds/hound-ibizan/n02091244_5638.jpg', breed: 'hound', sub_breed: 'ibizan' },
  }
}
