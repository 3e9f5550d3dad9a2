# syntax=docker/dockerfile:1

ARG GO_VERSION=1.26
ARG DEBIAN=bookworm

FROM --platform=$BUILDPLATFORM golang:${GO_VERSION}-${DEBIAN} AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
ARG VERSION=development
ARG TARGETOS
ARG TARGETARCH
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=${VERSION}" -o /holdfast ./cmd/holdfast

FROM debian:${DEBIAN}-slim
# git, ssh and the certificates are for the engines, which fetch modules with
# them; Holdfast itself needs none. tini is process 1: it passes signals on to
# the server, and reaps the processes that dead engines leave behind.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates git openssh-client tini \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --system --gid 10001 holdfast \
    && useradd --system --uid 10001 --gid holdfast --home-dir /var/lib/holdfast --shell /usr/sbin/nologin holdfast \
    && install --directory --owner root --group root --mode 0711 /var/lib/holdfast
COPY --from=build /holdfast /usr/local/bin/holdfast
# The server is root in the container, so that each engine has its own user: with
# the default profile of container runtimes that is what keeps code in a plan from
# the server. As another user (--user 10001) it needs user namespaces; with
# Landlock alone its agent plans, and applies need an agent of another user.
ENV HOME=/var/lib/holdfast
WORKDIR /var/lib/holdfast
VOLUME /var/lib/holdfast
# Webhooks, the API, agents. The listeners are on loopback unless holdfast.yaml
# says otherwise: server.public.address: ":8080" and so on.
EXPOSE 8080 8081 8082
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/bin/tini", "--", "/usr/local/bin/holdfast"]
CMD ["serve", "--config", "/etc/holdfast/holdfast.yaml"]
