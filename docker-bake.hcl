# Both images for both architectures: `docker buildx bake --file docker-bake.hcl`. Nothing is pushed, because IMAGE is empty until the owner of a registry sets it, and
# only `--push` pushes.

variable "IMAGE" {
  default = ""
}

variable "VERSION" {
  default = "0.3.0"
}

variable "REVISION" {
  default = ""
}

group "default" {
  targets = ["gateway", "all"]
}

target "common" {
  context   = "."
  platforms = ["linux/amd64", "linux/arm64"]
  attest    = ["type=provenance,mode=max", "type=sbom"]
  labels = {
    "org.opencontainers.image.title"       = "agent-api-gateway"
    "org.opencontainers.image.description" = "One HTTP layer over many public data APIs: every call queued, caps held, waits known."
    "org.opencontainers.image.source"      = "https://github.com/agent-api-gateway/agent-api-gateway"
    "org.opencontainers.image.version"     = VERSION
    "org.opencontainers.image.revision"    = REVISION
  }
}

target "gateway" {
  inherits = ["common"]
  target   = "gateway"
  tags     = IMAGE == "" ? [] : ["${IMAGE}:${VERSION}", "${IMAGE}:latest"]
}

target "all" {
  inherits = ["common"]
  target   = "all"
  tags     = IMAGE == "" ? [] : ["${IMAGE}:${VERSION}-all", "${IMAGE}:all"]
}
